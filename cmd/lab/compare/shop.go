package compare

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// childShop is a shop in a process of its own.
type childShop struct {
	url      string
	cmd      *exec.Cmd
	stop     context.CancelFunc
	logged   chan struct{} // closed when its log has been read to the end
	mu       sync.Mutex
	warnings []string // what it complained of, each once
	last     []string // the last lines of its log, for when it fails
}

// logLine is what is read of a line of the child's log.
type logLine struct {
	Level string `json:"level"`
	Msg   string `json:"msg"`
	URL   string `json:"url"`
	Error string `json:"error"`
}

// startShop starts `seckill serve` on a free port, its options given as variables so that secrets are seen by nobody.
// It returns when the shop is open; ctx ends it.
func startShop(ctx context.Context, program string, variables map[string]string) (*childShop, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &childShop{cmd: exec.CommandContext(ctx, program, "serve"), stop: stop, logged: make(chan struct{})}
	s.cmd.Env = os.Environ()
	for name, value := range variables {
		s.cmd.Env = append(s.cmd.Env, name+"="+value)
	}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 30 * time.Second
	stderr, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		stop()
		return nil, err
	}
	opened := make(chan string, 1)
	go s.read(stderr, opened)
	select {
	case s.url = <-opened:
		return s, nil
	case <-s.logged:
		return nil, fmt.Errorf("the shop did not open: %w\n%s", errors.Join(s.wait(), context.Cause(ctx)), strings.Join(s.last, "\n"))
	case <-time.After(30 * time.Second):
		return nil, fmt.Errorf("the shop did not open in time: %w\n%s", s.close(), strings.Join(s.last, "\n"))
	}
}

// read reads the log until the process ends.
func (s *childShop) read(log io.Reader, opened chan<- string) {
	defer close(s.logged)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line logLine
		_ = json.Unmarshal(lines.Bytes(), &line) // other lines are for people
		if line.URL != "" {
			opened <- line.URL
		}
		s.note(lines.Text(), line)
	}
	_, _ = io.Copy(io.Discard, log) // a line too long must not stop the shop
}

func (s *childShop) note(text string, line logLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line.Level == "WARN" || line.Level == "ERROR" {
		complaint := strings.TrimSuffix(line.Msg+": "+line.Error, ": ")
		if !slices.Contains(s.warnings, complaint) && len(s.warnings) < 20 {
			s.warnings = append(s.warnings, complaint)
		}
	}
	s.last = append(s.last, text)
	s.last = s.last[max(0, len(s.last)-10):]
}

// close ends the shop as an operator would, and waits for it.
func (s *childShop) close() error {
	s.stop()
	<-s.logged
	return s.wait()
}

func (s *childShop) wait() error {
	err := s.cmd.Wait()
	s.stop()
	if s.cmd.ProcessState.Success() {
		return nil // that it was asked to end is no failure
	}
	return err
}

// usage is what the shop has taken of the machine.
type usage struct {
	CPU      time.Duration `json:"cpu_ns"`
	Resident int64         `json:"resident_bytes"` // at most
}

// usage is known after close.
func (s *childShop) usage() usage {
	state := s.cmd.ProcessState
	u := usage{CPU: state.UserTime() + state.SystemTime()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.Resident = r.Maxrss * 1024 // Linux counts in KiB
	}
	return u
}

// variables are the options of serve for one turn, on top of what the environment says.
func (b *bench) variables(c combination, place *place) map[string]string {
	s := &b.cmd.Servers
	v := map[string]string{
		"LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json", "LOG_LEVEL": "info", "ACCESS_LOG": "0", "METRICS": "true",
		"JWT_KEY": b.key, "MIGRATE": "true", "LOCK": c.Lock, "COMMIT_BATCH_MAX": strconv.Itoa(c.BatchMax),
		"DATA": place.data, "MYSQL_DSN": place.dsn, "MYSQL_CONNS": strconv.Itoa(s.MySQLConns),
		"REDIS_ADDRS": strings.Join(s.RedisAddrs, ","), "REDIS_CLUSTER": strconv.FormatBool(s.RedisCluster),
		"REDIS_SENTINEL_MASTER": s.RedisSentinelMaster, "REDIS_SENTINEL_PASSWORD": s.RedisSentinelPassword,
		"REDIS_USERNAME": s.RedisUsername, "REDIS_PASSWORD": s.RedisPassword, "REDIS_DB": strconv.Itoa(s.RedisDB),
		"REDLOCK_ADDRS": strings.Join(b.cmd.RedlockAddrs, ","), "ZOOKEEPER_ADDRS": strings.Join(s.ZooKeeperAddrs, ","),
	}
	named := map[string]string{}
	for name, value := range v {
		named["SECKILL_"+name] = value
	}
	return named
}
