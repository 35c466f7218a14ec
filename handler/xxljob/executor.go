// Package xxljob lets an XXL-Job administration server (2.3 and later, 3.x) run the program's jobs: it speaks the
// protocol of an executor. The server finds executors by their registration, calls them over HTTP, and gets each result
// by a callback. See the developer's guide of XXL-Job, chapter "executor RESTful API".
package xxljob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"seckill/service/outbox"
)

// Config is what an Executor needs. All fields but the last three are required.
type Config struct {
	Admins  []string // base addresses of the administration servers, like http://xxl:8080/xxl-job-admin
	AppName string   // of the executor, as the administration server knows it
	Address string   // base address under which the administration server reaches this executor
	Token   string   // access token, the same on both sides
	Jobs    []outbox.Job

	Beat   time.Duration // how often the executor registers; default 30 s, after three times as long it is forgotten
	Client *http.Client  // default: one with a timeout of 5 s
	Log    *slog.Logger  // default: none
}

// Executor runs jobs when it is told to. It is the HTTP handler that the administration server calls; Run does the rest.
type Executor struct {
	cfg       Config
	jobs      map[string]outbox.Job
	logs      *logs
	callbacks chan callback

	mu      sync.Mutex
	ctx     context.Context // of Run; nil while that does not run
	queues  map[int]*queue  // by the administration server's job id
	running sync.WaitGroup
}

// callbackQueue is how many results may wait for an administration server that is away.
const callbackQueue = 1000

// New checks the configuration.
func New(cfg Config) (*Executor, error) {
	for name, missing := range map[string]bool{
		"an administration server": len(cfg.Admins) == 0, "an app name": cfg.AppName == "",
		"an address": cfg.Address == "", "an access token": cfg.Token == "", "jobs": len(cfg.Jobs) == 0,
	} {
		if missing {
			return nil, fmt.Errorf("xxl-job: %s is required", name)
		}
	}
	if cfg.Beat <= 0 {
		cfg.Beat = 30 * time.Second
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: 5 * time.Second}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for i, admin := range cfg.Admins {
		cfg.Admins[i] = strings.TrimRight(admin, "/")
	}
	x := &Executor{cfg: cfg, jobs: map[string]outbox.Job{}, logs: newLogs(), callbacks: make(chan callback, callbackQueue), queues: map[int]*queue{}}
	for _, job := range cfg.Jobs {
		x.jobs[job.Name] = job
	}
	return x, nil
}

// Run registers the executor and delivers results until ctx ends. Then it breaks off what runs, waits for that,
// delivers those results as far as it can within a few seconds, and takes the registration back.
func (x *Executor) Run(ctx context.Context) {
	x.mu.Lock()
	x.ctx = ctx
	x.mu.Unlock()
	var delivering sync.WaitGroup
	delivering.Go(func() { x.deliver(ctx) })
	ticker := time.NewTicker(x.cfg.Beat)
	defer ticker.Stop()
	for {
		if err := x.register(ctx, "registry"); err != nil && ctx.Err() == nil {
			x.cfg.Log.Warn("xxl-job: registering failed; trying again", "error", err)
		}
		select {
		case <-ticker.C:
			continue
		case <-ctx.Done():
		}
		break
	}
	x.mu.Lock()
	x.ctx = nil // no job starts any more
	x.mu.Unlock()
	x.running.Wait()
	delivering.Wait()
	x.farewell()
}

// farewell sends what is left and takes the registration back.
func (x *Executor) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if batch := x.pending(); len(batch) > 0 {
		if err := x.post(ctx, "callback", batch); err != nil {
			x.cfg.Log.Warn("xxl-job: results are lost", "results", len(batch), "error", err)
		}
	}
	if err := x.register(ctx, "registryRemove"); err != nil {
		x.cfg.Log.Warn("xxl-job: the registration stays until it expires", "error", err)
	}
}

func (x *Executor) register(ctx context.Context, action string) error {
	registration := map[string]string{"registryGroup": "EXECUTOR", "registryKey": x.cfg.AppName, "registryValue": x.cfg.Address}
	return x.post(ctx, action, registration)
}

// deliver sends results, several at a time, and keeps them while no administration server takes them.
func (x *Executor) deliver(ctx context.Context) {
	for {
		var batch []callback
		select {
		case c := <-x.callbacks:
			batch = append([]callback{c}, x.pending()...)
		case <-ctx.Done():
			return
		}
		for failures := 1; ; failures++ {
			err := x.post(ctx, "callback", batch)
			if err == nil {
				break
			}
			x.cfg.Log.Warn("xxl-job: reporting results failed; trying again", "results", len(batch), "error", err)
			if !(outbox.Backoff{First: time.Second, Longest: time.Minute}).Wait(ctx, failures) {
				x.report(batch...) // for the farewell
				return
			}
		}
	}
}

// pending returns the results that wait, without waiting.
func (x *Executor) pending() (batch []callback) {
	for {
		select {
		case c := <-x.callbacks:
			batch = append(batch, c)
		default:
			return batch
		}
	}
}

// report queues results.
func (x *Executor) report(results ...callback) {
	for _, c := range results {
		select {
		case x.callbacks <- c:
		default:
			x.cfg.Log.Error("xxl-job: a result is dropped, since too many wait", "log_id", c.LogID)
		}
	}
}

// errNotRunning: Run was not called or has ended.
var errNotRunning = errors.New("the executor is not running")
