package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func slowDrills() []drill {
	return []drill{{
		name:  "slow-network",
		shows: "All that one instance sends is late, and some of it gets lost: its orders take longer, the other one takes more of them, and none is wrong.",
		fears: "Neither up nor down: time-outs while the work is being done, answers that come too late, and everything is tried again.",
		locks: everyLock, span: 25 * time.Second, shortSpan: 20 * time.Second,
		do: slowNetwork,
	}}
}

// What is done to every interface of an instance but its loopback. netem is what is meant for this; a kernel without it
// may have what makes a narrow pipe (whose queue is long, and overflows) and a filter that drops by chance.
const (
	slowByNetem = "tc qdisc add dev $d root netem delay 30ms 10ms loss 2%"
	slowByPipe  = "tc qdisc add dev $d root tbf rate 1mbit burst 8kb latency 300ms && iptables -A OUTPUT -o $d -m statistic --mode random --probability 0.02 -j DROP"
	fastAgain   = "tc qdisc del dev $d root; iptables -D OUTPUT -o $d -m statistic --mode random --probability 0.02 -j DROP 2>/dev/null; true"
)

func slowNetwork(ctx context.Context, r *run) error {
	hit, other := r.instance()
	tools, err := r.networkTools(ctx)
	if err != nil {
		return r.skip("no image with tc: %v", err)
	}
	defer tools.remove(context.WithoutCancel(ctx))
	r.heals["slow network of "+hit] = func(ctx context.Context) error { return tools.each(ctx, hit, fastAgain) }
	at, how := time.Now(), "30 ms later (± 10), one packet in fifty lost"
	if missing := tools.each(ctx, hit, slowByNetem); missing != nil {
		if err := tools.each(ctx, hit, fastAgain); err != nil {
			return err
		}
		how = "through 1 Mbit/s, one packet in fifty lost; this kernel has no netem"
		if err := tools.each(ctx, hit, slowByPipe); err != nil {
			return r.skip("this kernel has neither netem nor what could take its place: %v; %v", missing, err)
		}
	}
	r.event(fault, "what %s sends arrives %s", hit, how)
	if err := r.let(ctx, r.between(6*time.Second, 9*time.Second)); err != nil {
		return err
	}
	lost, err := tools.lost(ctx, hit)
	if err != nil {
		return err
	}
	if err := r.assert(lost > 0, "%d packets of %s were lost", lost, hit); err != nil {
		return err
	}
	sold, err := r.placedSince(ctx, at)
	if err != nil {
		return err
	}
	r.note("%d orders were placed meanwhile by %s and %s", sold, hit, other)
	if err := tools.each(ctx, hit, fastAgain); err != nil {
		return err
	}
	delete(r.heals, "slow network of "+hit)
	back := time.Now()
	r.event(healed, "the network of %s is as it was", hit)
	before, err := r.placedBy(ctx, hit)
	if err != nil {
		return err
	}
	if err := r.placesAgain(ctx, hit, before[hit]); err != nil {
		return err
	}
	r.measure("an order by it after its network was as before", time.Since(back), 0)
	return nil
}

// networkTools is an image with tc and iptables. They run in a container that shares an instance's network and nothing
// else: the instance's own has no shell.
type networkTools struct {
	r     *run
	image string
	built bool
}

// networkTools finds tc in the images that are there, or makes an image that has it.
func (r *run) networkTools(ctx context.Context) (*networkTools, error) {
	for _, service := range []string{gateway, broker} {
		image := r.services[service].Image
		if _, err := r.run(ctx, "run", "--rm", "--entrypoint", "sh", image, "-c", "command -v tc && command -v iptables"); err == nil {
			return &networkTools{r: r, image: image}, nil
		}
	}
	dir, err := os.MkdirTemp("", "seckill-drill-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nobody needs it any more
	text := "FROM " + r.services[gateway].Image + "\nRUN apt-get update && apt-get install -y --no-install-recommends iproute2 iptables\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	image, err := r.run(ctx, "build", "--quiet", dir)
	return &networkTools{r: r, image: image, built: true}, err
}

// remove removes the image, if it was made.
func (t *networkTools) remove(ctx context.Context) {
	if t.built {
		_, _ = t.r.run(ctx, "image", "rm", "--force", t.image) // all that it costs is room
	}
}

// each runs a command for each interface d of a service, until one fails.
func (t *networkTools) each(ctx context.Context, service, command string) error {
	_, err := t.sh(ctx, service, "for d in $(ls /sys/class/net); do [ $d = lo ] || { "+command+"; } || exit 1; done")
	return err
}

func (t *networkTools) sh(ctx context.Context, service, script string) (string, error) {
	id, err := t.r.container(service)
	if err != nil {
		return "", err
	}
	return t.r.run(ctx, "run", "--rm", "--network", "container:"+id, "--cap-add", "NET_ADMIN", "--cap-add", "NET_RAW", "--user", "0", "--entrypoint", "sh", t.image, "-c", script)
}

var droppedByQueue = regexp.MustCompile(`dropped (\d+)`)

// lost counts the packets of a service that were dropped on purpose.
func (t *networkTools) lost(ctx context.Context, service string) (n int64, err error) {
	text, err := t.sh(ctx, service, "tc -s qdisc show; echo ---; iptables -L OUTPUT -v -n -x 2>/dev/null || true")
	if err != nil {
		return 0, err
	}
	return parseLost(text)
}

// parseLost adds up what tc and iptables have counted.
func parseLost(text string) (n int64, err error) {
	queues, filters, _ := strings.Cut(text, "---")
	for _, m := range droppedByQueue.FindAllStringSubmatch(queues, -1) {
		dropped, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("tc: %w", err)
		}
		n += dropped
	}
	for line := range strings.Lines(filters) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "DROP" {
			dropped, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("iptables: %w", err)
			}
			n += dropped
		}
	}
	return n, nil
}
