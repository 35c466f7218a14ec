package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// metric reads a metric of an instance, by its name and labels as they stand on the page, such as
// seckill_breaker_open{breaker="lock"}. One that is not there yet is zero: nothing of the kind has happened.
func (r *run) metric(ctx context.Context, instance, name string) (float64, error) {
	status, body, err := get(ctx, "http://"+r.ports[instance]+"/metrics")
	if err != nil {
		return 0, err
	}
	if status != 200 {
		return 0, fmt.Errorf("%s: /metrics answers %d", instance, status)
	}
	return parseMetric(body, name)
}

func parseMetric(page, name string) (float64, error) {
	lines := bufio.NewScanner(strings.NewReader(page))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, lines.Err()
}

// lockBreaker is 1 while an instance does without its lock.
const lockBreaker = `seckill_breaker_open{breaker="lock"}`

// locksGranted counts the locks that an instance got.
const locksGranted = `seckill_locks_total{outcome="granted"}`

// breakers is the condition that on both instances the breaker of the lock stands as wanted.
func (r *run) breakers(want float64) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		var errs []error
		for _, instance := range []string{shop1, shop2} {
			value, err := r.metric(ctx, instance, lockBreaker)
			if err == nil && value != want {
				err = fmt.Errorf("%s: %s is %v", instance, lockBreaker, value)
			}
			errs = append(errs, err)
		}
		err := errors.Join(errs...)
		return err == nil, err
	}
}
