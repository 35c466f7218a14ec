// Package xxljob lets an XXL-Job administration server (2.3 or later) run jobs of this program. It implements the
// "executor RESTful API" of XXL-Job's documentation: the executor registers itself, the server calls it over HTTP, and
// the executor sends each result back by a callback.
package xxljob

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/service/outbox"
)

// Config configures an Executor. All fields except RegisterEvery are required.
type Config struct {
	Admins  []string // base URLs of the administration servers, such as http://xxl:8080/xxl-job-admin
	AppName string   // of the executor, as configured at the administration server
	Address string   // base URL under which the administration server reaches this executor
	Token   string   // access token, the same on both sides
	Jobs    []outbox.Job
	Log     *slog.Logger

	RegisterEvery time.Duration // default 30 s; a registration expires after 90 s
}

// Executor runs jobs for the administration server, which calls it as an HTTP handler. Run registers it and delivers
// results.
type Executor struct {
	cfg       Config
	jobs      map[string]outbox.Job
	client    http.Client
	newResult chan struct{} // signals that results has grown
	running   sync.WaitGroup

	mu      sync.Mutex
	ctx     context.Context // of Run; nil while it does not run
	queues  map[int]*queue  // by job id; a queue exists while its job runs
	results []callback      // not yet delivered, oldest first
	logs    *lru.Cache[int64, *runLog]
}

const (
	maxResults = 1000 // that wait while no administration server is available
	maxLogs    = 1000 // runs whose log is kept in memory
)

// New returns an Executor. It does nothing until Run.
func New(cfg Config) (*Executor, error) {
	if len(cfg.Admins) == 0 || cfg.AppName == "" || cfg.Address == "" || cfg.Token == "" || len(cfg.Jobs) == 0 || cfg.Log == nil {
		return nil, errors.New("xxl-job: administration servers, app name, address, access token, jobs and log are required")
	}
	cfg.RegisterEvery = cmp.Or(cfg.RegisterEvery, 30*time.Second)
	logs, err := lru.New[int64, *runLog](maxLogs)
	x := &Executor{
		cfg: cfg, jobs: map[string]outbox.Job{}, client: http.Client{Timeout: 5 * time.Second},
		newResult: make(chan struct{}, 1), queues: map[int]*queue{}, logs: logs,
	}
	for _, job := range cfg.Jobs {
		x.jobs[job.Name] = job
	}
	return x, err
}

// Run registers the executor and delivers results until ctx ends. Then it cancels running jobs, waits for them, delivers
// their results within a few seconds, and removes the registration.
func (x *Executor) Run(ctx context.Context) {
	x.setContext(ctx)
	registration := time.NewTicker(x.cfg.RegisterEvery)
	defer registration.Stop()
	x.register(ctx, "registry")
	for ctx.Err() == nil {
		x.deliver(ctx)
		select {
		case <-registration.C:
			x.register(ctx, "registry")
		case <-x.newResult:
		case <-ctx.Done():
		}
	}
	x.setContext(nil) //nolint:staticcheck // without a context, no job starts any more
	x.running.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	x.deliver(closing)
	x.register(closing, "registryRemove")
}

func (x *Executor) setContext(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ctx = ctx
}

func (x *Executor) register(ctx context.Context, action string) {
	registration := map[string]string{"registryGroup": "EXECUTOR", "registryKey": x.cfg.AppName, "registryValue": x.cfg.Address}
	err := x.post(ctx, action, registration)
	if err != nil && ctx.Err() == nil {
		x.cfg.Log.Warn("xxl-job: registration failed", "action", action, "error", err)
	}
}

// deliver sends all results that wait. If that fails, they are sent with the next result or registration.
func (x *Executor) deliver(ctx context.Context) {
	x.mu.Lock()
	batch := slices.Clone(x.results)
	x.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	if err := x.post(ctx, "callback", batch); err != nil {
		x.cfg.Log.Warn("xxl-job: results could not be delivered", "results", len(batch), "error", err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.results = x.results[len(batch):]
}

// report queues a result. x.mu is held.
func (x *Executor) report(result callback) {
	if len(x.results) == maxResults {
		x.cfg.Log.Error("xxl-job: too many results wait; this one is dropped", "log_id", result.LogID)
		return
	}
	x.results = append(x.results, result)
	select {
	case x.newResult <- struct{}{}:
	default: // Run has a signal already
	}
}
