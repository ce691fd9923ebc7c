package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is the built binary, in a folder with its queues.toml.
type program struct {
	folder      string
	databaseURL string
}

func (p program) file() string { return filepath.Join(p.folder, "queues.toml") }

// writeFile writes a queues.toml whose every job runs this program again, to leave a mark.
func (p program) writeFile(queues []queue) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, q := range queues {
		fmt.Fprintf(&text, `[[worker]]
queue = %q
command = [%q, "mark"]
max_jobs_per_second = %g
burst = %d
concurrency = %d

`, q.name, self, q.perSecond, q.burst, q.concurrency)
	}
	return os.WriteFile(p.file(), text.Bytes(), 0o644)
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.folder, "queuekeeper"), append(args, "-c", p.file())...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+p.databaseURL)
	return cmd
}

func (p program) do(ctx context.Context, args ...string) error {
	return output(p.command(ctx, args...))
}

// supervisor is a running `queuekeeper run`.
type supervisor struct {
	cmd    *exec.Cmd
	log    *logBuffer
	ended  chan struct{} // closed when it has ended, and everybody who writes to its log
	status error         // after ended
}

// leavePatience is how long a supervisor may take to drain, and how long its children may outlive it.
const leavePatience = 10 * time.Second

func (p program) start(ctx context.Context) (*supervisor, error) {
	s := &supervisor{cmd: p.command(ctx, "run"), log: &logBuffer{}, ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	// The children inherit the log. Wait goes on until the last of them has closed it, or this is over.
	s.cmd.WaitDelay = leavePatience
	// Ctrl-C is for us: a signal to the whole terminal must not reach the supervisor beside ours.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.status = s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// stop asks the supervisor to leave, and reports it if it does not, not with status 0 or not with all its children.
func (s *supervisor) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the supervisor: %w", err)
	}
	late := time.AfterFunc(leavePatience, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	<-s.ended
	switch {
	case errors.Is(s.status, exec.ErrWaitDelay):
		return fmt.Errorf("processes are left %s after the supervisor ended", leavePatience)
	case s.status != nil:
		return fmt.Errorf("the supervisor, told to stop by SIGTERM: got %w, want exit status 0", s.status)
	}
	return nil
}

// logBuffer keeps what was written to it. It is not an *os.File, so that exec copies from a pipe and notices who
// still holds the other end.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// tail returns the last n lines.
func (l *logBuffer) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(l.text.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
