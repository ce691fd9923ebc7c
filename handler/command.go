package handler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/internal/procs"
	"queuekeeper/jobs"
)

// The exit statuses of a command that say more than "failed". Both are those of sysexits.h.
const (
	exitPermanent = 65 // the job's data is at fault
	exitThrottled = 75 // come back later
)

// held is how long a command's output is still read after its end. Only a process that left the command's
// group, and so outlived it, can hold it open for longer than it takes to read what is there.
const held = time.Second

// command starts a process for each job: args as JSON on standard input, the rest in the environment.
type command struct {
	argv        []string
	dir         string
	killAfter   time.Duration
	memoryLimit int64 // bytes; 0: none
	env         []string
	log         hclog.Logger
}

// run does one job. The job ends when the process that was started ends; what is left of its process group is
// killed then. When ctx ends, the group gets SIGTERM and, after killAfter, SIGKILL; the error then wraps the
// cause of ctx, whatever the command ended with.
//
// The group is within the session of this process, not a session of its own: if this process is killed, its
// supervisor ends the command through the session.
func (c command) run(ctx context.Context, job jobs.Job) error {
	if ctx.Err() != nil {
		return fmt.Errorf("start command: %w", context.Cause(ctx))
	}
	out := newOutput(c.log, job)
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(slices.Clip(c.env), jobEnv(job)...)
	cmd.Stdin = bytes.NewReader(job.Args) // a command that does not read it is none the worse: EPIPE is ignored
	cmd.Stdout = out.stream("stdout")
	cmd.Stderr = out.stream("stderr")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = held
	refusal, err := c.start(cmd)
	if err != nil {
		return fmt.Errorf("start command: %w", err)
	}
	ended := c.await(ctx, cmd.Process.Pid)
	err = cmd.Wait()
	out.flush()
	refused := refusal()
	if cmd.ProcessState == nil {
		return fmt.Errorf("wait for command: %w", err)
	}
	// Any other err is about the output of a command that has ended: its status alone says how.
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ended {
		return fmt.Errorf("%w: command ended with %v", context.Cause(ctx), exitError(status, out.tail.text()))
	}
	if refused != nil {
		return fmt.Errorf("start command: %w", refused)
	}
	return answer(status, out.tail.text())
}

// start starts the process. What it returns tells, once that has ended, why it was not the command's after all.
func (c command) start(cmd *exec.Cmd) (refusal func() error, err error) {
	found := cmd.Err == nil && cmd.Path != "" // if not, Start says why
	if c.memoryLimit == 0 || !found {
		return func() error { return nil }, cmd.Start()
	}
	return startLimited(cmd, c.memoryLimit)
}

// await returns when the leader of the process group pgid has ended and the rest of the group was killed, and
// reports whether it was ended by us because ctx ended. The leader is left unreaped: until it is reaped no
// stranger can get its number, and the kill reaches only what is ours.
func (c command) await(ctx context.Context, pgid int) (ended bool) {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = procs.WaitNoReap(pgid) // of our own child: cannot fail
	}()
	defer signalGroup(pgid, syscall.SIGKILL)

	select {
	case <-exited:
		return false
	case <-ctx.Done():
	}
	select {
	case <-exited: // by itself, at the same moment: its own status counts
		return false
	default:
	}
	signalGroup(pgid, syscall.SIGTERM)
	patience := time.NewTimer(c.killAfter)
	defer patience.Stop()
	select {
	case <-exited:
	case <-patience.C:
		signalGroup(pgid, syscall.SIGKILL)
		_ = syscall.Kill(pgid, syscall.SIGKILL) // the leader may have moved to another group
		<-exited
	}
	return true
}

// signalGroup signals a process group. An error means that nobody is left in it.
func signalGroup(pgid int, sig syscall.Signal) {
	if pgid > 1 { // -1 would be everybody, 0 ourselves
		_ = syscall.Kill(-pgid, sig)
	}
}

// answer is what the end of a command says about the job.
func answer(status syscall.WaitStatus, tail string) error {
	err := exitError(status, tail)
	switch {
	case status.Exited() && status.ExitStatus() == 0:
		return nil
	case status.Exited() && status.ExitStatus() == exitPermanent:
		return jobs.Permanent(err)
	case status.Exited() && status.ExitStatus() == exitThrottled:
		return jobs.Throttled(0, err)
	}
	return err
}

// exitError says how a command ended and what it printed last.
func exitError(status syscall.WaitStatus, tail string) error {
	how := fmt.Sprintf("exit status %d", status.ExitStatus())
	if status.Signaled() {
		how = fmt.Sprintf("killed by signal %d", status.Signal())
	}
	if tail != "" {
		how += ": " + tail
	}
	return errors.New(how)
}

func jobEnv(job jobs.Job) []string {
	return []string{
		"JOB_ID=" + strconv.FormatInt(job.ID, 10),
		"JOB_QUEUE=" + job.Queue,
		"JOB_NAME=" + job.Name,
		"JOB_ATTEMPT=" + strconv.Itoa(job.Attempt),
		"JOB_LANE=" + job.Lane,
	}
}
