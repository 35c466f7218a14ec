package redislock

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// request asks for a script to be run on one lock. Its answer must not be read before done is closed.
type request struct {
	script *script
	load   bool   // the server does not know the script yet
	alone  bool   // shares no call: one that it shared has failed
	key    string // of the lock
	fence  any    // of the key's hash slot; locks that have it in common can share a call
	args   [3]any // as many as the script takes

	n      int64
	err    error
	shared bool // err is that of a call with others
	done   chan struct{}
}

// call runs one script on the locks of some requests: a script costs the server more to start than a lock in it.
type call struct {
	requests []*request
	cmd      *redis.Cmd
}

// group puts together what can share a call.
func group(batch []*request) []call {
	var calls []call
next:
	for _, r := range batch {
		for i := range calls {
			if calls[i].takes(r) {
				calls[i].requests = append(calls[i].requests, r)
				continue next
			}
		}
		calls = append(calls, call{requests: []*request{r}})
	}
	for i := range calls {
		calls[i].cmd = command(calls[i].requests)
	}
	return calls
}

// takes tells whether r can share the call.
func (c *call) takes(r *request) bool {
	first := c.requests[0]
	return !first.alone && !r.alone && first.script == r.script && first.load == r.load && first.fence == r.fence
}

// command builds EVALSHA, or EVAL where the server does not know the script yet. What is a pointer goes into the command
// as what it points to.
func command(requests []*request) *redis.Cmd {
	first := requests[0]
	s := first.script
	words := make([]any, 3, 4+len(requests)*(1+s.args))
	words[0], words[1] = "evalsha", s.digest
	if first.load {
		words[0], words[1] = "eval", s.source
	}
	for _, r := range requests {
		words = append(words, &r.key)
	}
	if s.fenced {
		words = append(words, first.fence)
	}
	words[2] = len(words) - 3
	for _, r := range requests {
		words = append(words, r.args[:s.args]...)
	}
	cmd := redis.NewCmd(context.Background(), words...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// handOut tells each request what came back for it, and returns the first error among the answers.
func (c *call) handOut() (first error) {
	answers, err := c.cmd.Slice()
	if err == nil && len(answers) != len(c.requests) {
		err = fmt.Errorf("redislock: %d answers for %d locks", len(answers), len(c.requests))
	}
	for i, r := range c.requests {
		r.err, r.shared = err, err != nil && len(c.requests) > 1
		if err == nil {
			r.n, r.err = number(answers[i])
		}
		if first == nil {
			first = r.err
		}
		close(r.done)
	}
	return first
}

// number is what a script returned for one lock.
func number(value any) (int64, error) {
	switch v := value.(type) {
	case int64:
		return v, nil
	case error:
		return 0, v
	default:
		return 0, fmt.Errorf("redislock: the server answered %v", v)
	}
}
