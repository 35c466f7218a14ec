package xxljob

import (
	"strings"
	"sync"
	"time"
)

// logsMax is how many runs' logs are kept, in memory: what a job has to say is also in its result and in the program's
// own log.
const logsMax = 1000

// logs keeps the lines of the latest runs.
type logs struct {
	mu    sync.Mutex
	runs  map[int64]*runLog
	order []int64 // oldest first
}

type runLog struct {
	lines []string
	ended bool
}

func newLogs() *logs { return &logs{runs: map[int64]*runLog{}} }

func (l *logs) add(id int64, line string) { l.write(id, line, false) }
func (l *logs) end(id int64, line string) { l.write(id, line, true) }

func (l *logs) write(id int64, line string, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.runs[id]
	if r == nil {
		r = &runLog{}
		l.runs[id] = r
		l.order = append(l.order, id)
		if len(l.order) > logsMax {
			delete(l.runs, l.order[0])
			l.order = l.order[1:]
		}
	}
	r.lines = append(r.lines, time.Now().UTC().Format("2006-01-02 15:04:05.000Z ")+line)
	r.ended = r.ended || ended
}

// read returns the lines from a number on, counted from 1.
func (l *logs) read(id int64, from int) logPart {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = max(from, 1)
	r := l.runs[id]
	switch {
	case r == nil:
		return logPart{FromLine: from, Content: "no log of this run is kept here", IsEnd: true}
	case from > len(r.lines):
		return logPart{FromLine: from, ToLine: len(r.lines), IsEnd: r.ended}
	}
	return logPart{FromLine: from, ToLine: len(r.lines), Content: strings.Join(r.lines[from-1:], "\n") + "\n", IsEnd: r.ended}
}
