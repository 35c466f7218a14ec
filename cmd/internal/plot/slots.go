package plot

import (
	"slices"

	"seckill/loadtest"
)

// Over is a figure of each slot of a load's timeline, in the slot's middle. The rest of a slot at the end says little, and
// is left out.
func Over(name string, slots []loadtest.Slot, figure func(*loadtest.Slot) float64) Series {
	line := Series{Name: name}
	for i := range slots {
		s := &slots[i]
		if s.Width > slots[0].Width/2 {
			line.Points = append(line.Points, Point{At: s.At + s.Width/2, Value: figure(s)})
		}
	}
	return line
}

// Positive leaves out what has no place on a logarithmic scale: where nothing was answered, there is no time to be drawn.
func (s Series) Positive() Series {
	s.Points = slices.DeleteFunc(s.Points, func(p Point) bool { return p.Value <= 0 })
	return s
}
