package xxljob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// queue holds the triggers of one job, which run one at a time.
type queue struct {
	waiting []request
	cancel  context.CancelCauseFunc // of the current run
}

// Block strategies: what to do with a trigger while its job runs. All others queue it.
const (
	discardLater = "DISCARD_LATER"
	coverEarly   = "COVER_EARLY"
)

// maxWaiting is the number of triggers of one job that may wait.
const maxWaiting = 100

var (
	errKilled   = errors.New("killed by the administration server")
	errReplaced = errors.New("replaced by a later trigger")
)

// run starts a job, or treats the trigger by its block strategy if the job is running.
func (x *Executor) run(r request) reply {
	if _, ok := x.jobs[r.Handler]; !ok {
		return failure("there is no job handler %q", r.Handler)
	}
	if r.GlueType != "" && r.GlueType != "BEAN" {
		return failure("glue type %q is not supported, only BEAN", r.GlueType)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil || x.ctx.Err() != nil {
		return failure(notRunning)
	}
	q := x.queues[r.JobID]
	if q == nil {
		q = &queue{waiting: []request{r}}
		x.queues[r.JobID] = q
		ctx := x.ctx
		x.running.Go(func() { x.work(ctx, r.JobID, q) })
		return success
	}
	switch {
	case r.BlockStrategy == discardLater:
		return failure("the job is running, and later triggers are discarded")
	case r.BlockStrategy == coverEarly:
		x.cancelRuns(q, errReplaced)
	case len(q.waiting) == maxWaiting:
		return failure("too many triggers of the job wait")
	}
	q.waiting = append(q.waiting, r)
	return success
}

// kill cancels the current run of a job and drops those that wait.
func (x *Executor) kill(r request) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q := x.queues[r.JobID]; q != nil {
		x.cancelRuns(q, errKilled)
	}
	return success
}

func (x *Executor) cancelRuns(q *queue, cause error) {
	for _, r := range q.waiting {
		x.finish(r, "", cause)
	}
	q.waiting = nil
	if q.cancel != nil {
		q.cancel(cause)
	}
}

// work runs the triggers of a queue until none is left.
func (x *Executor) work(ctx context.Context, jobID int, q *queue) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(q.waiting) > 0 {
		r := q.waiting[0]
		q.waiting = q.waiting[1:]
		runCtx, cancel := context.WithCancelCause(ctx)
		q.cancel = cancel
		x.addLog(r.LogID, fmt.Sprintf("%s begins, parameters %q", r.Handler, r.Params))
		x.mu.Unlock()
		summary, err := x.do(runCtx, r)
		cancel(nil)
		x.mu.Lock()
		x.finish(r, summary, err)
	}
	delete(x.queues, jobID)
}

func (x *Executor) do(ctx context.Context, r request) (summary string, err error) {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(r.Timeout)*time.Second, fmt.Errorf("not done within %d s", r.Timeout))
		defer cancel()
	}
	summary, err = x.jobs[r.Handler].Run(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return summary, err
}

// finish logs and reports the result of a run. x.mu is held.
func (x *Executor) finish(r request, summary string, err error) {
	result := callback{LogID: r.LogID, LogTime: r.LogTime, Code: codeOK, Msg: summary}
	if err != nil {
		result.Code, result.Msg = codeFail, strings.TrimPrefix(summary+"; "+err.Error(), "; ")
	}
	x.addLog(r.LogID, fmt.Sprintf("%s ends with code %d: %s", r.Handler, result.Code, result.Msg)).ended = true
	x.report(result)
}

// runLog is the log of one run.
type runLog struct {
	lines []string
	ended bool
}

// addLog adds a line to the log of a run. x.mu is held.
func (x *Executor) addLog(id int64, line string) *runLog {
	log, ok := x.logs.Get(id)
	if !ok {
		log = &runLog{}
		x.logs.Add(id, log)
	}
	log.lines = append(log.lines, time.Now().UTC().Format("2006-01-02 15:04:05.000Z ")+line)
	return log
}

// log returns the lines of a run's log from a number on, counted from 1.
func (x *Executor) log(r request) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	part := logPart{FromLine: max(r.FromLine, 1), Content: "the log of this run is not available", IsEnd: true}
	if log, ok := x.logs.Get(r.LogID); ok {
		part.ToLine, part.IsEnd, part.Content = len(log.lines), log.ended, ""
		if part.FromLine <= len(log.lines) {
			part.Content = strings.Join(log.lines[part.FromLine-1:], "\n") + "\n"
		}
	}
	return reply{Code: codeOK, Content: part, Data: part}
}
