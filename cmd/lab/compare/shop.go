package compare

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// childShop is a shop in a separate process.
type childShop struct {
	url      string
	cmd      *exec.Cmd
	stop     context.CancelFunc
	logEnded chan struct{} // closed at the end of its log; then the fields below may be read
	warnings []string      // distinct warnings and errors
	lastLog  []string      // the last lines, to explain a failure
}

// startShop starts `seckill serve` and returns when the shop is open. The shop ends with ctx, or by close.
func startShop(ctx context.Context, program string, environment []string) (*childShop, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &childShop{cmd: exec.CommandContext(ctx, program, "serve"), stop: stop, logEnded: make(chan struct{})}
	s.cmd.Env = environment
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
	go s.readLog(stderr, opened)
	select {
	case s.url = <-opened:
		return s, nil
	case <-s.logEnded:
		err = context.Cause(ctx)
	case <-time.After(30 * time.Second):
		err = errors.New("time-out")
	}
	err = errors.Join(err, s.close())
	return nil, fmt.Errorf("the shop did not start: %w\n%s", err, strings.Join(s.lastLog, "\n"))
}

// readLog reads the log until the process ends. It sends the shop's URL once the shop is open.
func (s *childShop) readLog(log io.Reader, opened chan<- string) {
	defer close(s.logEnded)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Level, Msg, URL, Error string }
		_ = json.Unmarshal(lines.Bytes(), &line) // other lines are not JSON
		if line.URL != "" {
			opened <- line.URL
		}
		if line.Level == "WARN" || line.Level == "ERROR" {
			warning := strings.TrimSuffix(line.Msg+": "+line.Error, ": ")
			if !slices.Contains(s.warnings, warning) && len(s.warnings) < 20 {
				s.warnings = append(s.warnings, warning)
			}
		}
		s.lastLog = append(s.lastLog, lines.Text())
		s.lastLog = s.lastLog[max(0, len(s.lastLog)-10):]
	}
	_, _ = io.Copy(io.Discard, log) // a line that is too long must not block the shop
}

// close stops the shop with SIGTERM and waits for it.
func (s *childShop) close() error {
	s.stop()
	<-s.logEnded
	err := s.cmd.Wait()
	if s.cmd.ProcessState.Success() {
		return nil // Wait also reports that ctx was cancelled
	}
	return err
}

// usage is the CPU time and memory that the shop used.
type usage struct {
	CPU      time.Duration `json:"cpu_ns"`
	Resident int64         `json:"resident_bytes"` // maximum
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
