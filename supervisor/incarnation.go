package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
)

// lastWords is how long the status pipe of a reaped child is read on. Its lines are there already and the
// end of file follows them, unless something that left the child's session holds the pipe open. Not one of
// wire.Times: shortened, it could cost the line that says the lease is free.
const lastWords = time.Second

// maxLines is how many lines a child can be sent in its life, each once: settings, drain, stop.
const maxLines = 3

// incarnation is one life of a child. The loop owns the second half.
type incarnation struct {
	child   *child
	cmd     *exec.Cmd
	pid     int
	started time.Time
	control *os.File      // written by writeControl
	status  *os.File      // read by readStatus
	lines   chan []byte   // what writeControl has to write: never full, see maxLines
	reaped  chan struct{} // closed when the process is gone

	readySince time.Time // zero: not ready
	wasReady   bool
	killed     bool   // by us
	detail     string // what it last said for people
}

// exit is the end of an incarnation.
type exit struct {
	of      *incarnation
	status  int // -1: it was killed by a signal
	cause   string
	garbage int   // lines that were not status lines
	left    error // why something of its session may still run
}

// spawn starts the next incarnation of c. An error leaves nothing behind.
func (s *supervisor) spawn(c *child) (*incarnation, error) {
	settings, err := json.Marshal(s.settings(c))
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	childControl, control, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make control pipe: %w", err)
	}
	defer childControl.Close()
	status, childStatus, err := os.Pipe()
	if err != nil {
		_ = control.Close()
		return nil, fmt.Errorf("make status pipe: %w", err)
	}
	defer childStatus.Close()

	i := &incarnation{
		child:   c,
		cmd:     s.command(c, childControl, childStatus),
		control: control,
		status:  status,
		lines:   make(chan []byte, maxLines),
		reaped:  make(chan struct{}),
		started: time.Now(),
	}
	if err := i.cmd.Start(); err != nil {
		_ = control.Close()
		_ = status.Close()
		return nil, fmt.Errorf("start child: %w", err)
	}
	i.pid = i.cmd.Process.Pid
	i.lines <- append(settings, '\n')
	return i, nil
}

func (s *supervisor) settings(c *child) wire.Settings {
	return wire.Settings{
		Worker:          c.worker,
		DatabaseURL:     s.File.DatabaseURL,
		Schema:          s.File.Schema,
		Lease:           s.File.Lease,
		ShutdownTimeout: s.File.ShutdownTimeout,
		LogFormat:       s.File.LogFormat,
		Supervisor:      s.id,
		N:               c.n + 1,
		Deaths:          c.deaths,
		Times:           s.Times,
	}
}

// command is the process of one queue. Everybody can read its arguments, so nothing but the queue is there.
// It leads a session of its own: a Ctrl-C in the terminal does not reach it, and all it starts can be found.
// The mark in its environment tells, when all of us are gone, what of it is left.
func (s *supervisor) command(c *child, control, status *os.File) *exec.Cmd {
	queue := c.worker.Queue
	return &exec.Cmd{
		Path:        s.Executable,
		Args:        []string{"queuekeeper: " + queue, "child", queue},
		Env:         append(slices.Clone(s.env), wire.Mark(s.id, c.n+1)),
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		ExtraFiles:  []*os.File{wire.ControlFD - 3: control, wire.StatusFD - 3: status},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
}

// live sees the incarnation through to its end. It starts and waits for every goroutine of it; sending the
// exit is the last it does.
func (i *incarnation) live(reports chan<- report, exits chan<- exit) {
	e := exit{of: i}
	var pipes sync.WaitGroup
	pipes.Go(i.writeControl)
	pipes.Go(func() { e.garbage = i.readStatus(reports) })

	e.left = i.reap()
	close(i.reaped)
	_ = i.control.Close() // ends a write that nobody reads any more
	_ = i.status.SetReadDeadline(time.Now().Add(lastWords))
	pipes.Wait()
	_ = i.status.Close()

	e.status = i.cmd.ProcessState.ExitCode()
	e.cause = cause(i.cmd.ProcessState)
	exits <- e
}

// reap waits for the process, kills what still has its session and only then collects it: while the leader
// is not collected its number cannot be given to another session, and no successor can have been started.
func (i *incarnation) reap() error {
	err := procs.WaitNoReap(i.pid)
	if err == nil {
		err = procs.KillSession(i.pid)
	}
	_ = i.cmd.Wait() // its error is the exit status, which ProcessState keeps
	return err
}

// cause is how a process ended, in the words that go into the last error of its jobs.
func cause(p *os.ProcessState) string {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Sprintf("child killed by signal %d", w.Signal())
	}
	return fmt.Sprintf("exit status %d", p.ExitCode())
}

// send has a line written to the child. It never waits.
func (i *incarnation) send(c wire.Control) {
	line, err := json.Marshal(c)
	if err != nil {
		panic(err) // a string and a number
	}
	i.lines <- append(line, '\n')
}

// writeControl writes to the child, in its own time: settings can be larger than a pipe. The pipe stays open
// as long as the child lives, for its end means that the supervisor is gone.
func (i *incarnation) writeControl() {
	for {
		select {
		case <-i.reaped:
			return
		case line := <-i.lines:
			if _, err := i.control.Write(line); errors.Is(err, os.ErrClosed) {
				return
			} // any other error: the child does not listen any more; its exit or the deadline follows
		}
	}
}

// leaveReady ends a time of being ready. If it was a long one, what failed before it is forgotten.
func (i *incarnation) leaveReady(forget time.Duration) {
	if !i.readySince.IsZero() && time.Since(i.readySince) >= forget {
		i.child.failures = 0
	}
	i.readySince = time.Time{}
}
