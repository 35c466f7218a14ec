package inproc

import "sync"

// call collects the acknowledgements of one call of Publish. They may go on arriving when Publish has returned.
type call struct {
	done chan struct{} // closed when every event has all its answers

	mu      sync.Mutex
	left    int   // events that miss an answer
	missing []int // of each event: groups that have not answered yet
	results []error
}

func newCall(events, groups int) *call {
	c := &call{done: make(chan struct{}), left: events, missing: make([]int, events), results: make([]error, events)}
	for i := range c.missing {
		c.missing[i] = groups
	}
	if events == 0 {
		close(c.done)
	}
	return c
}

// answer takes what one group says about one event. Any failure fails the event.
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
		if err == nil && c.missing[i] > 0 {
			err = absent
		}
		results[i] = err
	}
	return results
}
