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

// lastWords is how long the pipes of a reaped child are read on. Its lines are there already and the end of file
// follows them, unless something that left the child's session holds a pipe open. Not one of wire.Times:
// shortened, it could cost the line that says the lease is free. Tests lengthen it.
var lastWords = time.Second

// maxPipe is how much a pipe holds, in bytes.
const maxPipe = 64 << 10

// untilEmpty reads what is in a pipe though the time to wait for more is over: on a busy machine the reader may not
// have come to it.
type untilEmpty struct {
	*os.File
	rest int // bytes that may have been there then
}

func (u *untilEmpty) Read(p []byte) (int, error) {
	n, err := u.File.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || u.rest <= 0 {
		return n, err
	}
	_ = u.SetReadDeadline(time.Now().Add(lastWords / 10)) // of a pipe that is open: cannot fail
	n, err = u.File.Read(p[:min(len(p), u.rest)])
	u.rest -= n
	return n, err
}

// incarnation is one life of a child. The loop owns the second half.
type incarnation struct {
	child    *child
	cmd      *exec.Cmd
	pid      int
	started  time.Time
	settings []byte        // its first line
	control  *os.File      // written by writeControl
	status   *os.File      // read by readStatus
	crash    *os.File      // read by readCrash
	orders   *outbox       // what writeControl has to write
	reaped   chan struct{} // closed when the process is gone
	memory   int64         // its memory_limit
	lease    time.Duration // how long it may go on after the last sign of it

	is         string // what it last said of itself
	detail     string // and for people
	readySince time.Time
	wasReady   bool
	bid        bool   // it has tried to acquire the queue, and not said what came of it
	jobs       int    // how many it runs
	up         bool   // it has come up: it is ready, or waits for what is not its fault
	age        int    // ticks since it was started
	silent     int    // ticks since it last gave a sign of life
	killIn     int    // ticks until it is killed, if it is leaving
	leaving    bool   // it was asked to, or hangs
	killed     bool   // by us, because it had to leave
	hung       string // why it was given up; "": it was not
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
	i := &incarnation{
		child:    c,
		settings: append(settings, '\n'),
		orders:   newOutbox(),
		reaped:   make(chan struct{}),
		memory:   c.made.worker.MemoryLimit,
		lease:    c.made.lease,
		started:  time.Now(),
	}
	theirs, err := i.pipes()
	for _, f := range theirs {
		defer f.Close()
	}
	if err == nil {
		i.cmd, err = s.command(c, theirs)
	}
	if err == nil {
		err = i.cmd.Start()
	}
	if err != nil {
		i.closePipes()
		return nil, fmt.Errorf("start child: %w", err)
	}
	i.pid = i.cmd.Process.Pid
	return i, nil
}

// pipes makes the three pipes and returns the child's ends, in the order of their descriptors. With an error some
// may be there all the same.
func (i *incarnation) pipes() (theirs []*os.File, err error) {
	for _, p := range []struct {
		ours  **os.File
		write bool // the child reads what we write
	}{
		wire.ControlFD - 3: {&i.control, true},
		wire.StatusFD - 3:  {&i.status, false},
		wire.CrashFD - 3:   {&i.crash, false},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, fmt.Errorf("make pipe: %w", err)
		}
		if p.write {
			r, w = w, r
		}
		*p.ours, theirs = r, append(theirs, w)
	}
	return theirs, nil
}

func (i *incarnation) closePipes() {
	for _, f := range []*os.File{i.control, i.status, i.crash} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (s *supervisor) settings(c *child) wire.Settings {
	return wire.Settings{
		Worker:          c.made.worker,
		DatabaseURL:     c.made.databaseURL,
		Schema:          c.made.schema,
		Lease:           c.made.lease,
		ShutdownTimeout: s.File.ShutdownTimeout,
		LogFormat:       s.File.LogFormat,
		Supervisor:      s.id,
		N:               c.n + 1,
		Deaths:          c.deaths,
		Quiet:           s.quiet,
		Times:           s.Times,
	}
}

// command is the process of one queue. Everybody can read its arguments, so nothing but the queue is there.
// It leads a session of its own: a Ctrl-C in the terminal does not reach it, and all it starts can be found.
// The mark in its environment tells, when all of us are gone, what of it is left.
func (s *supervisor) command(c *child, pipes []*os.File) (*exec.Cmd, error) {
	queue := c.made.worker.Queue
	cmd := &exec.Cmd{
		Path:        s.Executable,
		Args:        []string{"queuekeeper: " + queue, "child", queue},
		Env:         append(slices.Clone(c.made.env), wire.Mark(s.id, c.n+1)),
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		ExtraFiles:  pipes,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	return cmd, runAs(cmd, c.made.user)
}

// live sees the incarnation through to its end. It starts and waits for every goroutine of it; sending the
// exit is the last it does.
func (i *incarnation) live(reports chan<- report, exits chan<- exit) {
	e := exit{of: i}
	var crash string
	var pipes sync.WaitGroup
	pipes.Go(i.writeControl)
	pipes.Go(func() { e.garbage = i.readStatus(&untilEmpty{i.status, maxPipe}, reports) })
	pipes.Go(func() { crash = readCrash(&untilEmpty{i.crash, maxPipe}) })

	e.left = i.reap()
	close(i.reaped)
	_ = i.control.Close() // ends a write that nobody reads any more
	late := time.Now().Add(lastWords)
	_ = i.status.SetReadDeadline(late)
	_ = i.crash.SetReadDeadline(late)
	pipes.Wait()
	i.closePipes()

	e.status = i.cmd.ProcessState.ExitCode()
	e.cause = cause(i.cmd.ProcessState, crash, i.memory)
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

// writeControl writes to the child, in its own time: settings can be larger than a pipe. The pipe stays open
// as long as the child lives, for its end means that the supervisor is gone.
func (i *incarnation) writeControl() {
	if _, err := i.control.Write(i.settings); err != nil {
		return // the child does not listen; its exit or a deadline follows
	}
	for {
		select {
		case <-i.reaped:
			return
		case <-i.orders.more:
			if _, err := i.control.Write(i.orders.take()); errors.Is(err, os.ErrClosed) {
				return
			}
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
