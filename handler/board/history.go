package board

import (
	"strconv"
	"time"
)

const (
	historyStep = 500 * time.Millisecond
	keptPoints  = 300 // 2.5 minutes
)

// history is the recent past of the remembered figures, for the curves of a new viewer: of counters by how much they
// grew, of gauges what they were.
type history struct {
	points [keptPoints]point // point n is at n % keptPoints
	next   int
	ends   int64 // when the current step does, in milliseconds of the board
	before values
}

type point struct {
	at     int64
	values [len(remembered)]int64
}

// add looks at the figures at a moment, and takes a point once a step is over.
func (h *history) add(at int64, v *values) {
	if at < h.ends {
		return
	}
	step := historyStep.Milliseconds()
	h.ends = at - at%step + step
	p := &h.points[h.next%keptPoints]
	p.at = at
	for i, f := range remembered {
		p.values[i] = v[f]
		if f < counters {
			p.values[i] -= h.before[f]
		}
	}
	h.before = *v
	h.next++
}

// append writes it as JSON, column by column.
func (h *history) append(b []byte) []byte {
	first := max(0, h.next-keptPoints)
	column := func(value func(*point) int64) {
		b = append(b, '[')
		for n := first; n < h.next; n++ {
			if n > first {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, value(&h.points[n%keptPoints]), 10)
		}
		b = append(b, ']')
	}
	b = append(b, `{"t":`...)
	column(func(p *point) int64 { return p.at })
	for i, f := range remembered {
		b = append(append(append(b, `,"`...), figureNames[f]...), `":`...)
		column(func(p *point) int64 { return p.values[i] })
	}
	return append(b, '}')
}
