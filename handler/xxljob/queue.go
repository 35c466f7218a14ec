package xxljob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/service/outbox"
)

// queue is the runs of one job: one at a time. It exists while there is one.
type queue struct {
	waiting []run
	cancel  context.CancelCauseFunc // of the present run
}

// run is a trigger with its job.
type run struct {
	trigger
	job outbox.Job
}

// queueMax bounds the triggers of one job that wait.
const queueMax = 100

// The causes that break a run off.
var (
	errKilled  = errors.New("killed by the administration server")
	errCovered = errors.New("covered by a later trigger")
)

// run queues a trigger, by its strategy if the job is running already.
func (x *Executor) run(t trigger) reply {
	job, ok := x.jobs[t.Handler]
	switch {
	case t.GlueType != "" && t.GlueType != "BEAN":
		return reply{Code: codeFail, Msg: fmt.Sprintf("glue type %q is not supported, only BEAN", t.GlueType)}
	case !ok:
		return reply{Code: codeFail, Msg: fmt.Sprintf("there is no job handler %q here", t.Handler)}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil || x.ctx.Err() != nil {
		return reply{Code: codeFail, Msg: errNotRunning.Error()}
	}
	q := x.queues[t.JobID]
	if q == nil {
		q = &queue{waiting: []run{{t, job}}}
		x.queues[t.JobID] = q
		ctx := x.ctx
		x.running.Go(func() { x.work(ctx, t.JobID, q) })
		return reply{Code: codeOK}
	}
	switch {
	case t.BlockStrategy == discardLater:
		return reply{Code: codeFail, Msg: "the job is still running, and later triggers are discarded"}
	case t.BlockStrategy == coverEarly:
		x.breakOff(q, errCovered)
	case len(q.waiting) == queueMax:
		return reply{Code: codeFail, Msg: "too many triggers of the job wait"}
	}
	q.waiting = append(q.waiting, run{t, job})
	return reply{Code: codeOK}
}

// kill breaks off the present run and drops those that wait.
func (x *Executor) kill(job jobRef) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queues[job.JobID]
	if q == nil {
		return reply{Code: codeOK, Msg: "the job is not running"}
	}
	x.breakOff(q, errKilled)
	return reply{Code: codeOK}
}

func (x *Executor) breakOff(q *queue, cause error) {
	for _, r := range q.waiting {
		x.finish(r, "", cause)
	}
	q.waiting = nil
	if q.cancel != nil {
		q.cancel(cause)
	}
}

// work runs what waits, until nothing does.
func (x *Executor) work(ctx context.Context, jobID int, q *queue) {
	for {
		x.mu.Lock()
		if len(q.waiting) == 0 {
			delete(x.queues, jobID)
			x.mu.Unlock()
			return
		}
		r := q.waiting[0]
		q.waiting = q.waiting[1:]
		runCtx, cancel := context.WithCancelCause(ctx)
		q.cancel = cancel
		x.mu.Unlock()
		x.do(runCtx, r)
		cancel(nil)
	}
}

// do runs a job once.
func (x *Executor) do(ctx context.Context, r run) {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(r.Timeout)*time.Second, fmt.Errorf("not done within %d s", r.Timeout))
		defer cancel()
	}
	x.logs.add(r.LogID, fmt.Sprintf("%s begins, parameters %q", r.job.Name, r.Params))
	said, err := r.job.Run(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	x.finish(r, said, err)
}

func (x *Executor) finish(r run, said string, err error) {
	result := callback{LogID: r.LogID, LogTime: r.LogTime, Code: codeOK, Msg: said}
	if err != nil {
		result.Code, result.Msg = codeFail, err.Error()
		if said != "" {
			result.Msg = said + "; " + result.Msg
		}
	}
	x.logs.end(r.LogID, fmt.Sprintf("%s ends with code %d: %s", r.job.Name, result.Code, result.Msg))
	x.report(result)
}
