package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"queuekeeper/internal/tryout"
)

// supervisor is one that a scene has started.
type supervisor struct {
	place  string // in the folder of the scene; its log is beside it
	cmd    *exec.Cmd
	told   chan struct{} // closed before it is told to end
	ended  chan struct{} // closed when it has
	killed bool          // it was told by SIGKILL
}

func (s *supervisor) log() string { return s.place + ".log" }

// leavePatience is how long a supervisor may take to end.
const leavePatience = 20 * time.Second

// start starts one more and returns once it catches signals: before, a HUP would end it.
func (s *scene) start(ctx context.Context) (*supervisor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &supervisor{
		place: filepath.Join(s.folder, fmt.Sprintf("supervisor-%d", len(s.all)+1)),
		cmd:   exec.Command(s.self, "run", "-c", s.file()),
		told:  make(chan struct{}), ended: make(chan struct{}),
	}
	log, err := os.Create(v.log())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	v.cmd.Stdout, v.cmd.Stderr = log, log
	v.cmd.Env = append(os.Environ(), "DATABASE_URL="+s.url, placeVariable+"="+v.place)
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	s.all = append(s.all, v)
	go s.wait(v)
	return v, v.up(ctx)
}

func (s *scene) wait(v *supervisor) {
	_ = v.cmd.Wait() // its error is the exit status, which ProcessState keeps
	close(v.ended)
	select {
	case <-v.told:
	default:
		s.fail(fmt.Errorf("a supervisor ended by itself: %v", v.cmd.ProcessState))
	}
}

func (v *supervisor) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		text, err := os.ReadFile(v.log())
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("supervisor started")) {
			return nil
		}
		select {
		case <-v.ended:
			return fmt.Errorf("the supervisor did not start: %v\n%s", v.cmd.ProcessState, text)
		default:
		}
		if !tryout.Pause(ctx, 10*time.Millisecond) {
			return fmt.Errorf("the supervisor did not start within %s\n%s", startPatience, text)
		}
	}
}

// tookOn waits until the child of a queue has said that its limits are others.
func (v *supervisor) tookOn(ctx context.Context, queue string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("queue %s did not take its other limit on", queue))
	defer cancel()
	for {
		text, err := os.ReadFile(v.log())
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("limits taken on: queue="+queue+" ")) {
			return nil
		}
		if !tryout.Pause(ctx, 5*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// alive reports whether it was not told to end.
func (v *supervisor) alive() bool {
	select {
	case <-v.told:
		return false
	default:
		return true
	}
}

func (v *supervisor) tell(sig syscall.Signal) error {
	if v.alive() {
		close(v.told)
	}
	v.killed = v.killed || sig == syscall.SIGKILL
	if err := v.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end a supervisor: %w", err)
	}
	return nil
}

// stop tells all to leave and reports one that does not, or not with status 0. Children of one that was killed leave
// by themselves.
func (s *scene) stop() error {
	var errs []error
	for _, v := range s.all {
		if v.alive() {
			errs = append(errs, v.tell(syscall.SIGTERM))
		}
	}
	for _, v := range s.all {
		errs = append(errs, v.gone())
	}
	return errors.Join(errs...)
}

func (v *supervisor) gone() error {
	late := time.AfterFunc(leavePatience, func() { _ = v.cmd.Process.Kill() })
	defer late.Stop()
	<-v.ended
	if code := v.cmd.ProcessState.ExitCode(); code != 0 && !v.killed {
		return fmt.Errorf("a supervisor that was told to leave: got %v, want exit status 0", v.cmd.ProcessState)
	}
	return nil
}
