// Package child is one queue in its own process: one connection, one loop. It claims jobs, runs them at their
// pace, and gives everything back when it leaves.
package child

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/handler"
	"queuekeeper/internal/logs"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// Main runs the child that a supervisor has started, and returns its exit status. own are the program's own
// handlers.
func Main(own jobs.Handlers) int {
	if !isPipe(wire.ControlFD) || !isPipe(wire.StatusFD) || !isPipe(wire.CrashFD) {
		fmt.Fprintln(os.Stderr, "child: only a supervisor starts a child; use `queuekeeper run`")
		return wire.ExitUsage
	}
	control, status := os.NewFile(wire.ControlFD, "control"), os.NewFile(wire.StatusFD, "status")
	// Before anything else: what this process starts must hold neither the pipes open nor what it inherited.
	if err := procs.CloseOnExec(); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return wire.ExitFailed
	}
	signals, dumps := catchSignals()
	if err := crashTo(os.NewFile(wire.CrashFD, "crash")); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
	}

	lines := bufio.NewReader(control)
	set, err := readSettings(lines)
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return wire.ExitUsage
	}
	if set.Worker.Concurrency == 1 && os.Getenv("GOMAXPROCS") == "" {
		// One job at a time: handing it from core to core costs more than a second core gives.
		runtime.GOMAXPROCS(1)
	}
	log, flush := logs.New(os.Stderr, set.LogFormat == "json")
	defer flush()
	log = log.With("queue", set.Worker.Queue)
	go dump(dumps, log)
	r := newReporter(status, set.Times.Beat)
	defer r.close()

	handlers, err := findHandlers(set, own, log)
	if err == nil {
		err = confine(set.Worker, handlers, log)
	}
	if err != nil {
		r.say(wire.Status{Is: wire.Bye, Detail: err.Error(), Free: true})
		return wire.ExitConfig
	}
	c := newLoop(set, handlers, log)
	c.say, c.signals, c.control = r.say, signals, readControl(lines)
	c.life = &r.life
	r.say(wire.Status{Is: wire.Hello})
	code := c.run()
	r.say(wire.Status{Is: wire.Bye, Free: !c.mayHold})
	return code
}

func isPipe(fd int) bool {
	var s syscall.Stat_t
	return syscall.Fstat(fd, &s) == nil && s.Mode&syscall.S_IFMT == syscall.S_IFIFO
}

// catchSignals catches what people and process managers send. INT, HUP, USR2 and PIPE are caught and dropped, never
// ignored: commands would inherit that.
func catchSignals() (signals, dumps <-chan os.Signal) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR2, syscall.SIGPIPE)
	toLeave, toDump := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(toLeave, syscall.SIGTERM, syscall.SIGQUIT)
	signal.Notify(toDump, syscall.SIGUSR1)
	return toLeave, toDump
}

// crashTo has the runtime tell the supervisor why this process dies, if it does: there it becomes the error of the
// jobs. The text goes to standard error as well.
func crashTo(pipe *os.File) error {
	defer pipe.Close() // the runtime has a copy
	if err := debug.SetCrashOutput(pipe, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("set crash output: %w", err)
	}
	return nil
}

// confine keeps this process within what the file allows it. Commands are confined one by one.
func confine(w config.Worker, handlers *handler.Set, log hclog.Logger) error {
	procs.SetName("queuekeeper") // else it is called exe
	if err := procs.Nice(w.Nice); err != nil {
		return err
	}
	if w.MemoryLimit == 0 || !handlers.Go() {
		return nil
	}
	err := procs.LimitMemory(w.MemoryLimit)
	if err != nil && runtime.GOOS != "linux" { // where people develop with the file of a server
		log.Warn("no memory_limit here", "error", err)
		return nil
	}
	return err
}

// findHandlers finds out, before anything is claimed, whether jobs can be done here at all.
func findHandlers(set wire.Settings, own jobs.Handlers, log hclog.Logger) (*handler.Set, error) {
	if faults := set.Worker.CheckCommands(); len(faults) > 0 {
		return nil, faults
	}
	return handler.New(set.Worker, own, log)
}

func readSettings(lines *bufio.Reader) (set wire.Settings, err error) {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return set, fmt.Errorf("read settings: %w", err)
	}
	if err := json.Unmarshal(line, &set); err != nil {
		return set, fmt.Errorf("read settings: %w", err)
	}
	return set, nil
}

// readControl passes on the supervisor's lines until it is gone.
func readControl(lines io.Reader) <-chan wire.Control {
	orders := make(chan wire.Control)
	go func() {
		defer close(orders)
		decoder := json.NewDecoder(lines)
		for {
			var o wire.Control
			if decoder.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}
