package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// faults breaks parts of the cluster and repairs them. Each fault registers its repair, so that a drill that fails half-way
// leaves a cluster that works.
type faults struct {
	*steps
	*cluster
	repairs map[string]func() // by what is broken
}

// kill sends SIGKILL to services at the same moment. They stay down until start.
func (f *faults) kill(services ...string) {
	f.breakServices("killed (SIGKILL)", []string{"kill"}, f.start, services)
}

// stop stops services with SIGTERM, as an administrator does.
func (f *faults) stop(services ...string) {
	f.breakServices("stopped", []string{"stop"}, f.start, services)
}

// stopWithin is stop with a limit in seconds.
func (f *faults) stopWithin(seconds int, service string) {
	f.breakServices("stopped", []string{"stop", fmt.Sprintf("--time=%d", seconds)}, f.start, []string{service})
}

// pause stops all processes of services without their knowledge.
func (f *faults) pause(services ...string) {
	f.breakServices("paused: not one instruction runs there", []string{"pause"}, f.unpause, services)
}

// unpause lets paused services run on.
func (f *faults) unpause(services ...string) { f.repairServices("running on", "unpause", services) }

// start starts killed or stopped services. It does not wait until they are ready.
func (f *faults) start(services ...string) { f.repairServices("started", "start", services) }

// breakServices runs a docker command that breaks services. The event follows the command and that of a repair precedes
// it: these are the moments from which the shop's answers are measured.
func (f *faults) breakServices(done string, command []string, repair func(...string), services []string) {
	f.repairs[containersOf(services)] = func() { repair(services...) }
	check(f.Do(f.ctx, command, services...))
	f.event(fault, "%s %s", subject(services), done)
}

func (f *faults) repairServices(done, command string, services []string) {
	delete(f.repairs, containersOf(services))
	f.event(healed, "%s %s", subject(services), done)
	check(f.Do(f.ctx, []string{command}, services...))
}

func containersOf(services []string) string { return "containers " + strings.Join(services, " ") }

func subject(services []string) string {
	if len(services) > 1 {
		return strings.Join(services, " and ") + " are"
	}
	return services[0] + " is"
}

// disconnect removes a service from one of its networks.
func (f *faults) disconnect(service, network string) {
	check(f.Disconnect(f.ctx, service, network))
	f.repairs["network "+network+" "+service] = func() { f.reconnect(service, network) }
	f.event(fault, "%s is cut off from the network %s", service, network)
}

func (f *faults) reconnect(service, network string) {
	check(f.Connect(f.ctx, service, network))
	delete(f.repairs, "network "+network+" "+service)
	f.event(healed, "%s is back on the network %s", service, network)
}

// exec runs a command in the container of a service.
func (f *faults) exec(service string, command ...string) string {
	return must(f.Exec(f.ctx, service, command...))
}

// repairAll repairs what a drill has left broken, even if its context has ended.
func (f *faults) repairAll() error {
	f.ctx = context.WithoutCancel(f.ctx)
	var errs []error
	for _, repair := range f.repairs {
		errs = append(errs, attempt(repair))
	}
	clear(f.repairs)
	return errors.Join(errs...)
}
