package repository

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

// Variables that turn TestIDProcess into an instance: the database, and how far its clock is off.
const (
	processDSN   = "SECKILL_TEST_ID_DSN"
	processClock = "SECKILL_TEST_ID_CLOCK"
)

// twoPairs is a layout in which three instances are one too many, so that workers are passed on all the time.
func twoPairs() idgen.Layout {
	l := idgen.DefaultLayout()
	l.DataCenterBits, l.WorkerBits = 0, 2
	return l
}

// TestIDProcess is no test of its own: it is what TestIDsOfProcesses starts as an instance.
func TestIDProcess(t *testing.T) {
	dsn := os.Getenv(processDSN)
	if dsn == "" {
		return
	}
	offset, err := time.ParseDuration(os.Getenv(processClock))
	if err != nil {
		t.Fatal(err)
	}
	if err := instance(t.Context(), dsn, offset); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// instance writes ids to standard output until it is killed.
func instance(ctx context.Context, dsn string, offset time.Duration) error {
	db, err := OpenMySQL(ctx, dsn, PoolOptions{MaxOpen: 2}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	clock := idgentest.NewClock(time.Now().Add(offset))
	g, err := idgen.NewSnowflake(ctx, db.WorkerLeases(), idgen.WithLayout(twoPairs()), idgen.WithClock(clock.Wall),
		idgen.WithLease(time.Second, 500*time.Millisecond))
	if err != nil {
		return err
	}
	ids := make([]idgen.ID, 200)
	for ; ; time.Sleep(time.Millisecond) {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		err := g.NextN(wait, ids)
		cancel()
		if errors.Is(err, idgen.ErrLeaseLost) || errors.Is(err, context.DeadlineExceeded) {
			continue // nothing is left but to wait, or to be killed
		}
		if err != nil {
			return err
		}
		if err := binary.Write(os.Stdout, binary.LittleEndian, ids); err != nil {
			return err
		}
	}
}

// Instances are killed and come back on another clock, as workers that others have left.
func TestIDsOfProcesses(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		p := &processes{t: t, dsn: target.DSN, until: time.Now().Add(8 * time.Second)}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(p.lives)
		}
		wg.Wait()
		var fences int64
		if err := db.gorm.Raw("SELECT SUM(fence) FROM worker_lease").Scan(&fences).Error; err != nil {
			t.Fatal(err)
		}
		t.Logf("%d ids, %d kills, %d leases of two pairs", p.ids.Len(), p.kills.Load(), fences)
		if p.ids.Len() < 10_000 || p.kills.Load() < 6 || fences < 6 {
			t.Errorf("%d ids, %d kills, %d leases: too little happened to prove anything", p.ids.Len(), p.kills.Load(), fences)
		}
	})
}

type processes struct {
	t     *testing.T
	dsn   string
	until time.Time
	kills atomic.Int64
	mu    sync.Mutex
	ids   idgentest.Set
}

// lives starts an instance again and again, each time with a clock that is off by something else.
func (p *processes) lives() {
	for time.Now().Before(p.until) {
		reach := []time.Duration{time.Millisecond, time.Second, 10 * time.Second}[rand.IntN(3)]
		if err := p.live(rand.N(2*reach) - reach); err != nil {
			p.t.Error(err)
			return
		}
	}
}

// live runs an instance and kills it after a second or so, if it has not ended before, for want of a worker.
func (p *processes) live(offset time.Duration) error {
	cmd := exec.Command(os.Args[0], "-test.run=^TestIDProcess$")
	cmd.Env = append(os.Environ(), processDSN+"="+p.dsn, processClock+"="+offset.String())
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(300*time.Millisecond+rand.N(time.Second), func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	p.collect(out)
	err = cmd.Wait()
	exit := (*exec.ExitError)(nil)
	switch {
	case errors.As(err, &exit) && !exit.Exited():
		p.kills.Add(1)
	case !strings.Contains(complaint.String(), idgen.ErrNoWorker.Error()):
		return fmt.Errorf("instance ended by itself: %w: %s", err, complaint.String())
	}
	return nil
}

// collect reads the ids of an instance until it ends; the last ones may be cut off.
func (p *processes) collect(out io.Reader) {
	for buf := make([]idgen.ID, 200); binary.Read(out, binary.LittleEndian, buf) == nil; {
		p.mu.Lock()
		p.ids.Add(p.t, buf...)
		p.mu.Unlock()
	}
}
