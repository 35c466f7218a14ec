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

	"seckill/cmd/internal/compose"
)

func slowDrills() []drill {
	return []drill{{
		name:        "slow-network",
		expectation: "Everything that one instance sends arrives late, and some of it is lost: its orders take longer, the other instance takes more of them, and none is wrong.",
		risk:        "Neither up nor down: time-outs while the work is being done, answers that come too late, and everything is tried again.",
		locks:       allLocks, duration: 25 * time.Second, shortDuration: 20 * time.Second,
		script: slowNetwork,
	}}
}

// Commands for every interface d of an instance except its loopback. A kernel without netem may have a token bucket, whose
// queue is long and overflows, and a filter that drops packets at random.
const (
	slowByNetem  = "tc qdisc add dev $d root netem delay 30ms 10ms loss 2%"
	slowByBucket = "tc qdisc add dev $d root tbf rate 1mbit burst 8kb latency 300ms && iptables -A OUTPUT -o $d -m statistic --mode random --probability 0.02 -j DROP"
	fastAgain    = "tc qdisc del dev $d root; iptables -D OUTPUT -o $d -m statistic --mode random --probability 0.02 -j DROP 2>/dev/null; true"
)

func slowNetwork(c *drillCase) {
	target, other := c.pickInstance()
	tools, err := newNetworkTools(c, target)
	if err != nil {
		c.skip("no image with tc: %v", err)
		return
	}
	repair := "slow network of " + target
	c.repairs[repair] = tools.repair
	at, how := time.Now(), "30 ms later (± 10), and one packet in fifty is lost"
	if netemErr := tools.each(slowByNetem); netemErr != nil {
		check(tools.each(fastAgain))
		how = "through 1 Mbit/s, and one packet in fifty is lost; this kernel has no netem"
		if err := tools.each(slowByBucket); err != nil {
			c.skip("this kernel has neither netem nor a replacement: %v; %v", netemErr, err)
			return
		}
	}
	c.event(fault, "what %s sends arrives %s", target, how)
	c.sleep(c.between(6*time.Second, 9*time.Second))
	lost := tools.lost()
	c.assert(lost > 0, "%d packets of %s were lost", lost, target)
	c.note("%d orders were placed meanwhile by %s and %s", c.soldSince(at), target, other)
	tools.repair()
	delete(c.repairs, repair)
	back := time.Now()
	c.event(healed, "the network of %s is as before", target)
	c.places(target, c.placedBy(target)[target])
	c.measure("an order by it after its network was as before", time.Since(back), 0)
}

// networkTools run tc and iptables in a container that shares the network of an instance, whose own image has no shell.
type networkTools struct {
	c       *drillCase
	service string
	image   string
	built   bool
}

// newNetworkTools finds tc in the images of the project, or builds an image that has it.
func newNetworkTools(c *drillCase, service string) (*networkTools, error) {
	for _, from := range []string{gateway, broker} {
		image := c.ImageOf(from)
		if _, err := c.Run(c.ctx, "run", "--rm", "--entrypoint", "sh", image, "-c", "command -v tc && command -v iptables"); err == nil {
			return &networkTools{c: c, service: service, image: image}, nil
		}
	}
	dir, err := os.MkdirTemp("", "seckill-drill-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text := "FROM " + c.ImageOf(gateway) + "\nRUN apt-get update && apt-get install -y --no-install-recommends iproute2 iptables\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, compose.BuildTimeout)
	defer cancel()
	image, err := c.Run(ctx, "build", "--quiet", dir)
	return &networkTools{c: c, service: service, image: image, built: true}, err
}

// repair makes the network fast again, and removes the image if it was built.
func (t *networkTools) repair() {
	check(t.each(fastAgain))
	if t.built {
		_, _ = t.c.Run(context.WithoutCancel(t.c.ctx), "image", "rm", "--force", t.image) // a leftover image only takes space
	}
}

// each runs a command for each interface d, until one fails.
func (t *networkTools) each(command string) error {
	_, err := t.shell("for d in $(ls /sys/class/net); do [ $d = lo ] || { " + command + "; } || exit 1; done")
	return err
}

func (t *networkTools) shell(script string) (string, error) {
	id, err := t.c.Container(t.service)
	if err != nil {
		return "", err
	}
	return t.c.Run(t.c.ctx, "run", "--rm", "--network", "container:"+id, "--cap-add", "NET_ADMIN", "--cap-add", "NET_RAW",
		"--user", "0", "--entrypoint", "sh", t.image, "-c", script)
}

// lost counts the packets that were dropped on purpose.
func (t *networkTools) lost() int64 {
	return must(parseLost(must(t.shell("tc -s qdisc show; echo ---; iptables -L OUTPUT -v -n -x 2>/dev/null || true"))))
}

var droppedByQueue = regexp.MustCompile(`dropped (\d+)`)

// parseLost adds up the counters of tc and iptables.
func parseLost(text string) (n int64, err error) {
	queues, filters, _ := strings.Cut(text, "---")
	var counts []string
	for _, m := range droppedByQueue.FindAllStringSubmatch(queues, -1) {
		counts = append(counts, m[1])
	}
	for line := range strings.Lines(filters) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "DROP" {
			counts = append(counts, f[0])
		}
	}
	for _, count := range counts {
		dropped, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("packets lost: %w", err)
		}
		n += dropped
	}
	return n, nil
}
