package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"queuekeeper/internal/tryout"
)

// worker is a [[worker]] of the file.
type worker struct {
	queue       string
	concurrency int
	perSecond   float64  // 0: no limit
	command     []string // none: the Go handlers of this program
}

func (w worker) toml() string {
	text := fmt.Sprintf("[[worker]]\nqueue = %q\nconcurrency = %d\n", w.queue, w.concurrency)
	if w.perSecond > 0 {
		text += fmt.Sprintf("max_jobs_per_second = %g\n", w.perSecond)
	}
	if w.command != nil {
		text += "command = [" + quoted(w.command) + "]\n"
	}
	return text
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, strconv.Quote(word))
	}
	return strings.Join(all, ", ")
}

// leavePatience is how long a supervisor may take to end.
const leavePatience = 30 * time.Second

// errEnded is why the context of a run's work ends early.
var errEnded = errors.New("the supervisor ended by itself")

// running does something while a supervisor of these workers runs. Its context ends when the supervisor does.
func (b *bench) running(ctx context.Context, binary, databaseURL string, workers []worker, do func(context.Context) error) error {
	log, err := os.Create(filepath.Join(b.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := b.command(ctx, binary, workers)
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "DATABASE_URL="+databaseURL, stampsVariable+"="+b.stamps())
	// A file, as many have it: nobody needs processor time to read it.
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	working, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		status := cmd.Wait()
		cancel(errEnded)
		ended <- status
	}()
	if err = do(working); err != nil && working.Err() != nil {
		err = context.Cause(working)
	}
	if err = errors.Join(err, stop(cmd, ended)); err != nil {
		return fmt.Errorf("%w\nthe log ends with:\n%s", err, tryout.Tail(log.Name(), 20))
	}
	return nil
}

// command is `run` on a file of these workers.
func (b *bench) command(ctx context.Context, binary string, workers []worker) (*exec.Cmd, error) {
	var text strings.Builder
	for _, w := range workers {
		text.WriteString(w.toml())
	}
	file := filepath.Join(b.folder, "queues.toml")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "run", "-c", file)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = leavePatience
	// Ctrl-C is for us: a signal to the whole terminal must not reach the supervisor beside ours.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// stop asks the supervisor to leave, and reports it if it does not, or not with status 0.
func stop(cmd *exec.Cmd, ended <-chan error) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the supervisor: %w", err)
	}
	late := time.AfterFunc(leavePatience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if status := <-ended; status != nil {
		return fmt.Errorf("the supervisor: %w", status)
	}
	return nil
}
