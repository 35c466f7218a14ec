package dbserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process runs mariadbd of this machine in its own directory.
type process struct {
	program string
	dir     string
	args    []string
	cmd     *exec.Cmd
	gone    chan struct{} // closed when cmd has ended
}

func newProcess(program string, args []string) (*process, error) {
	dir, err := os.MkdirTemp(DataDir(), "seckill-db-")
	if err != nil {
		return nil, err
	}
	p := &process{program: program, dir: dir}
	p.args = append([]string{"--no-defaults", "--datadir=" + p.data(), "--socket=" + filepath.Join(dir, "sock")}, args...)
	if os.Geteuid() == 0 {
		p.args = append(p.args, "--user=root") // the directory is ours, so the server runs as we do
	}
	return p, nil
}

// DataVariable names the environment variable with the directory that data goes to.
const DataVariable = "SECKILL_TEST_DATA"

// DataDir is the directory that servers keep their data below. A durable commit on a file system in memory
// would prove nothing, and /tmp often is one, so the default is /var/tmp.
func DataDir() string {
	if dir := os.Getenv(DataVariable); dir != "" {
		return dir
	}
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() {
		return "/var/tmp"
	}
	return os.TempDir()
}

func (p *process) data() string { return filepath.Join(p.dir, "data") }
func (p *process) log() string  { return filepath.Join(p.dir, "log") }
func (p *process) how() string  { return p.program }

func (p *process) start(ctx context.Context) error {
	if err := p.install(ctx); err != nil {
		return err
	}
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// Not bound to ctx, which only bounds the start: the server outlives it.
	p.cmd = exec.Command(p.program, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.gone = make(chan struct{})
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(gone)
	}(p.cmd, p.gone)
	return nil
}

// install fills the data directory, once.
func (p *process) install(ctx context.Context) error {
	if _, err := os.Stat(p.data()); err == nil {
		return nil
	}
	args := []string{"--no-defaults", "--datadir=" + p.data(), "--auth-root-authentication-method=normal", "--skip-test-db"}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	out, err := exec.CommandContext(ctx, "mariadb-install-db", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	return nil
}

func (p *process) alive(context.Context) error {
	if p.gone == nil {
		return errors.New("never started")
	}
	select {
	case <-p.gone:
		return fmt.Errorf("%s has ended: %s\n%s", p.program, p.cmd.ProcessState, tail(p.log()))
	default:
		return nil
	}
}

func (p *process) kill(ctx context.Context) error {
	if p.gone == nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kill %s: %w", p.program, context.Cause(ctx))
	}
}

// pause returns when the process has stopped: the signal takes effect later on a busy machine.
func (p *process) pause(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			return err
		}
		// The state follows the command, which is in parentheses: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
		if _, rest, _ := strings.Cut(string(status), ") "); strings.HasPrefix(rest, "T") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pause %s: %w", p.program, context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *process) resume(context.Context) error { return p.cmd.Process.Signal(syscall.SIGCONT) }

func (p *process) remove(ctx context.Context) error {
	return errors.Join(p.kill(ctx), os.RemoveAll(p.dir))
}

// tail returns the end of a log, where servers write why they failed.
func tail(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-2000):]
}
