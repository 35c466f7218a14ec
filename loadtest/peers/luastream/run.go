package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"seckill/loadtest/peers/luastream/shop"
)

// result is the result of one run.
type result struct {
	acknowledged float64 // orders a second that were answered 201
	durable      float64 // orders a second, from the first answer to the last commit
	waiting      int64   // orders acknowledged but not committed at the last answer
	drain        time.Duration
	orders       int64
	p50, p99     time.Duration
	good         bool // the load and the audit found nothing wrong
}

// run starts the servers and the contestant, warms it up, and sends the load.
func (c *compareCmd) run(ctx context.Context, who *contestant) (r result, err error) {
	var s servers
	defer func() { err = errors.Join(err, s.close()) }()
	redis, err := s.startRedis(ctx, c.Redis, c.AOF)
	if err != nil {
		return r, err
	}
	dsn, err := s.createDatabase(ctx, c.MySQLDSN)
	if err != nil {
		return r, err
	}
	listen, err := freeAddr()
	if err != nil {
		return r, err
	}
	addresses := []string{"--listen", listen, "--redis-addrs", redis, "--mysql-dsn", dsn}
	url := "http://" + listen
	if err := s.start(ctx, url+"/readyz", who.program, slices.Concat(who.args, addresses)...); err != nil {
		return r, err
	}
	if _, err := c.load(ctx, url, time.Second); err != nil { // connections, caches, pages
		return r, fmt.Errorf("warm-up: %w", err)
	}
	return c.measure(ctx, who, url)
}

// measure sends the load to a running shop.
func (c *compareCmd) measure(ctx context.Context, who *contestant, url string) (r result, err error) {
	report, err := c.load(ctx, url, c.Duration)
	if err != nil {
		return r, err
	}
	r = result{orders: report.Clients.Orders, p50: report.Load.Accepted.P50, p99: report.Load.Accepted.P99, good: report.Verdict.OK}
	r.acknowledged = float64(r.orders) / report.Load.Elapsed.Seconds()
	r.durable = r.acknowledged                                  // our shop commits before it answers
	if err := c.audit(ctx, url, &r); err != nil || !who.stats { // the peer's audit waits until its stream is empty
		return r, err
	}
	end, err := statsOf(ctx, url, report.After.ID)
	r.waiting, r.durable = end.Waiting, end.DurablePerSecond
	r.drain = time.Duration(end.DrainSeconds * float64(time.Second))
	return r, err
}

// report has what is read of `lab load --json`.
type report struct {
	Verdict struct {
		OK bool `json:"ok"`
	} `json:"verdict"`
	Load struct {
		Elapsed  time.Duration `json:"elapsed_ns"`
		Accepted struct {
			P50 time.Duration `json:"p50_ns"`
			P99 time.Duration `json:"p99_ns"`
		} `json:"accepted"`
	} `json:"load"`
	After struct {
		ID string `json:"id"`
	} `json:"voucher_after"`
	Clients struct {
		Orders int64 `json:"orders"`
	} `json:"clients"`
}

// unlimited is a stock and a number of users that no run uses up.
const unlimited = 10_000_000

// load sends the load to a new voucher, without an audit.
func (c *compareCmd) load(ctx context.Context, url string, d time.Duration) (report, error) {
	return c.generate(ctx, url, "--duration", d.String(), "--clients", strconv.Itoa(c.Clients),
		"--stock", strconv.Itoa(unlimited), "--users", strconv.Itoa(unlimited), "--no-audit")
}

// generate runs the load generator. Its status is 1 if the report has defects; that is no error here.
func (c *compareCmd) generate(ctx context.Context, url string, args ...string) (r report, err error) {
	args = append([]string{"load", "--url", url, "--jwt-key", key, "--scenario", "sale", "--duplicates", "1", "--json"}, args...)
	out, err := exec.CommandContext(ctx, c.Lab, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(out) == 0 {
		return r, fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil && len(out) == 0 {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

// audit audits the shop, by a load of one request.
func (c *compareCmd) audit(ctx context.Context, url string, r *result) error {
	report, err := c.generate(ctx, url, "--requests", "1", "--clients", "1", "--stock", "1", "--users", "1", "--timeout", "5m")
	r.good = r.good && report.Verdict.OK
	return err
}

// statsOf reads the peer's statistics of a sale.
func statsOf(ctx context.Context, url, voucher string) (found shop.Stats, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/stats", nil)
	if err != nil {
		return found, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return found, err
	}
	defer func() { _ = resp.Body.Close() }()
	var all []shop.Stats
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return found, fmt.Errorf("/stats: status %d: %w", resp.StatusCode, err)
	}
	for _, s := range all {
		if s.Voucher.String() == voucher {
			return s, nil
		}
	}
	return found, fmt.Errorf("/stats: no voucher %s", voucher)
}
