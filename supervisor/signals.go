package supervisor

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals are the signals a supervisor answers to. Each has a channel of its own: in a shared one a storm of
// one signal drops the others.
type signals struct {
	quit, interrupt, terminate, hangup, status, quiet chan os.Signal

	orphan chan os.Signal // nil unless the orphans of all processes are left to this one
}

// Catch has the signals that Run answers to wait for it from now on: a hangup must not end a program that is still
// reading its file. They stay caught for the rest of the process: a repeat that arrives between the end of Run and the
// exit must not change the exit status.
func Catch() { caught() }

var caught = sync.OnceValue(func() *signals {
	// Caught and dropped: a log whose reader is gone must not end the supervisor. Not ignored: children
	// and their commands would inherit that.
	catch(syscall.SIGPIPE)
	s := &signals{
		quit:      catch(syscall.SIGQUIT),
		interrupt: catch(syscall.SIGINT),
		terminate: catch(syscall.SIGTERM),
		hangup:    catch(syscall.SIGHUP),
		status:    catch(syscall.SIGUSR1),
		quiet:     catch(syscall.SIGUSR2),
	}
	if os.Getpid() == 1 {
		s.orphan = catch(syscall.SIGCHLD)
	}
	return s
})

func catch(sig os.Signal) chan os.Signal {
	c := make(chan os.Signal, 1) // a repeat that does not fit says nothing new
	signal.Notify(c, sig)
	return c
}
