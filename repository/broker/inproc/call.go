package inproc

import (
	"sync"

	"seckill/service/outbox"
)

// delivery is one event on its way to one group.
type delivery struct {
	event  outbox.Event
	call   *call
	index  int // of the event in its call
	failed int // deliveries before this one
}

// call collects the acknowledgements of one call of Publish. They may go on arriving when Publish has returned.
type call struct {
	done chan struct{} // closed when every event has its verdict

	mu      sync.Mutex
	left    int   // events without a verdict
	missing []int // of each event: groups that have not answered yet
	results []error
}

func newCall(events int) *call {
	c := &call{done: make(chan struct{}), left: events, missing: make([]int, events), results: make([]error, events)}
	if events == 0 {
		close(c.done)
	}
	return c
}

// expect sets how many groups have to acknowledge each event.
func (c *call) expect(groups int) {
	for i := range c.missing {
		c.missing[i] = groups
	}
}

// fail gives every event the same verdict.
func (c *call) fail(err error) {
	for i := range c.results {
		c.results[i] = err
	}
}

// answer takes what one group says about one event; the last one to answer settles it, any failure fails it.
func (c *call) answer(index int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.results[index] = err
	}
	if c.missing[index]--; c.missing[index] > 0 {
		return
	}
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// verdicts returns the results so far; events that still miss an answer get absent.
func (c *call) verdicts(absent error) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	results := make([]error, len(c.results))
	for i, err := range c.results {
		if c.missing[i] > 0 && err == nil {
			err = absent
		}
		results[i] = err
	}
	return results
}
