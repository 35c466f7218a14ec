package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"seckill/repository"
)

// run is one drill at work: the verbs that its function is written in. Every verb that breaks something registers how
// it is healed, so that a drill that fails half-way leaves a project that the next one can use.
type run struct {
	drill
	*project
	*timeline
	load     *load
	rand     *rand.Rand // chooses what is random: the moment of a fault, the instance that it hits
	lock     string
	short    bool
	guardOff bool           // the shop was built without its guard
	db       *repository.DB // as the shop's user
	root     *sql.DB        // as the database's administrator

	figures []figure
	skipped string                                 // why this machine cannot play the drill
	heals   map[string]func(context.Context) error // by what is broken
}

// figure is a time that was measured.
type figure struct {
	Name   string        `json:"name"` // says from which moment to which
	Took   time.Duration `json:"took_ns"`
	Limit  time.Duration `json:"limit_ns,omitempty"` // 0: none is set
	Judged bool          `json:"judged"`             // beyond the limit the drill fails
}

func (f *figure) over() bool { return f.Limit > 0 && f.Took > f.Limit }

// measure notes how long something took. Short runs are for machines that do much else: there a limit only informs.
func (r *run) measure(name string, took, limit time.Duration) {
	f := figure{Name: name, Took: took, Limit: limit, Judged: limit > 0 && !r.short}
	r.figures = append(r.figures, f)
	text := fmt.Sprintf("%s: %s", name, short(took))
	if limit > 0 {
		text += fmt.Sprintf(" (at most %s)", short(limit))
	}
	r.note("%s", text)
}

// --- What breaks, and what heals -------------------------------------------------------------------------------------

// kill sends SIGKILL to services at the same moment. None is started again before start.
func (r *run) kill(ctx context.Context, services ...string) error {
	return r.containerVerb(ctx, "kill", "killed (SIGKILL)", r.start, services)
}

// stop ends services as an administrator would, with SIGTERM and the time that their file gives them.
func (r *run) stop(ctx context.Context, services ...string) error {
	return r.containerVerb(ctx, "stop", "stopped", r.start, services)
}

// pause stops every process of services with SIGSTOP, as far as they can tell.
func (r *run) pause(ctx context.Context, services ...string) error {
	return r.containerVerb(ctx, "pause", "paused: not one instruction runs there", r.unpause, services)
}

// unpause lets them run on.
func (r *run) unpause(ctx context.Context, services ...string) error {
	return r.containerVerb(ctx, "unpause", "running on", nil, services)
}

// start starts what was killed or stopped. It does not wait until it is well.
func (r *run) start(ctx context.Context, services ...string) error {
	return r.containerVerb(ctx, "start", "started", nil, services)
}

// containerVerb does the same to several containers with one command. What breaks something is told when it is done,
// what heals when it begins: those are the moments from which the shop's answers are looked at. heal undoes it; nil: it
// heals by itself.
func (r *run) containerVerb(ctx context.Context, verb, said string, heal func(context.Context, ...string) error, services []string) error {
	args, what := strings.Fields(verb), "containers "+strings.Join(services, " ")
	for _, s := range services {
		id, err := r.container(s)
		if err != nil {
			return err
		}
		args = append(args, id)
	}
	text := fmt.Sprintf("%s %s %s", strings.Join(services, " and "), isAre(services), said)
	if heal == nil {
		delete(r.heals, what)
		r.event(healed, "%s", text)
		_, err := r.run(ctx, args...)
		return err
	}
	r.heals[what] = func(ctx context.Context) error { return heal(ctx, services...) }
	_, err := r.run(ctx, args...)
	if err == nil {
		r.event(fault, "%s", text)
	}
	return err
}

func isAre(services []string) string {
	if len(services) > 1 {
		return "are"
	}
	return "is"
}

// disconnect takes a service off one of its networks: what it sends there gets lost, without any answer.
func (r *run) disconnect(ctx context.Context, service, network string) error {
	id, err := r.container(service)
	if err != nil {
		return err
	}
	if _, err := r.run(ctx, "network", "disconnect", r.networks[network], id); err != nil {
		return err
	}
	r.heals["network "+network+" "+service] = func(ctx context.Context) error { return r.connect(ctx, service, network) }
	r.event(fault, "%s is cut off from the network %s", service, network)
	return nil
}

// connect puts it back, under its name.
func (r *run) connect(ctx context.Context, service, network string) error {
	id, err := r.container(service)
	if err != nil {
		return err
	}
	if _, err := r.run(ctx, "network", "connect", "--alias", service, r.networks[network], id); err != nil {
		return err
	}
	delete(r.heals, "network "+network+" "+service)
	r.event(healed, "%s is back on the network %s", service, network)
	return nil
}

// heal undoes what a drill has left broken.
func (r *run) heal(ctx context.Context) error {
	var errs []error
	for _, undo := range r.heals {
		errs = append(errs, undo(ctx))
	}
	clear(r.heals)
	return errors.Join(errs...)
}

// exec runs a command in a service's container and returns what it printed.
func (r *run) exec(ctx context.Context, service string, command ...string) (string, error) {
	id, err := r.container(service)
	if err != nil {
		return "", err
	}
	return r.run(ctx, append([]string{"exec", id}, command...)...)
}

// --- What is waited for, and what has to hold ------------------------------------------------------------------------

// patience is how long a drill waits for what has to come. It is no limit for what is measured: a machine may be slow.
const patience = 3 * time.Minute

// poll is how often is looked whether it has come; less often if looking itself takes longer, so as not to be a load.
const poll = 50 * time.Millisecond

// until waits until the condition holds. An error of the condition means "not yet", and is told if it never does.
func (r *run) until(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		begin := time.Now()
		ok, err := condition(ctx)
		if ok && err == nil {
			return nil
		}
		if !wait(ctx, max(poll, time.Since(begin))) {
			return fmt.Errorf("it did not come about that %s: %w", what, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// assert fails the drill unless ok, and says in the timeline what was found to hold.
func (r *run) assert(ok bool, format string, args ...any) error {
	if !ok {
		return fmt.Errorf("it does not hold: "+format, args...)
	}
	r.note("found: "+format, args...)
	return nil
}

// skip says why this machine cannot play the drill. The load goes on for the ledger, which has to be sound all the same.
func (r *run) skip(format string, args ...any) error {
	r.skipped = fmt.Sprintf(format, args...)
	r.note("skipped: %s", r.skipped)
	return nil
}

// let lets the load go on for a while.
func (r *run) let(ctx context.Context, d time.Duration) error {
	if !wait(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// between chooses a time by the seed.
func (r *run) between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.rand.Int64N(int64(most-least)+1))
}

// instance chooses an instance of the shop by the seed, and the other one.
func (r *run) instance() (hit, other string) {
	if r.rand.IntN(2) == 0 {
		return shop1, shop2
	}
	return shop2, shop1
}

// wait waits for a time, or until ctx ends; then it is false.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
