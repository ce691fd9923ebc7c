package supervisor

import (
	"syscall"
	"time"

	"queuekeeper/internal/wire"
)

// watch counts, once a tick, how long children have been silent. It counts ticks and reads no clock: after the
// supervisor itself was stopped, or the whole machine, it has missed its ticks as the children have their beats, and
// nobody is killed for that.
func (s *supervisor) watch() {
	s.age++
	s.announce()
	s.notify.status(s.summary()) // if there was no room for the last one
	if s.initial {
		s.reapOrphans() // a signal may have come while the list of them was read
	}
	for _, c := range s.children {
		if c.alive == nil {
			continue
		}
		i := c.alive
		i.age++
		i.silent++
		switch {
		case i.hung != "" || i.killed:
		case !i.up && i.age > s.ticks(s.Times.Boot):
			s.giveUp(i, "did not come up", s.Times.Boot)
		case i.up && i.silent > s.ticks(s.Times.Silent):
			s.giveUp(i, "gave no sign of life", s.Times.Silent)
		}
		if i.leaving {
			s.countDown(i)
		}
	}
}

// ticks is d in ticks.
func (s *supervisor) ticks(d time.Duration) int { return int((d + s.Times.Tick - 1) / s.Times.Tick) }

// foundStale takes how long the child's loop has not come round. The child counts that by its own beats.
func (s *supervisor) foundStale(i *incarnation, age time.Duration) {
	if age >= s.Times.Stale && i.hung == "" && !i.killed {
		s.giveUp(i, "did nothing", age)
	}
}

// giveUp asks a child that hangs where it does so and to leave. If it can do neither it is killed.
func (s *supervisor) giveUp(i *incarnation, what string, d time.Duration) {
	c := i.child
	i.hung = "child hung: it " + what + " for " + d.String()
	s.Log.Error("child hangs: it is asked to leave, and killed if it cannot", "queue", c.queue(), "pid", i.pid, "n", c.n,
		"why", what, "for", d, "killed_in", s.Times.Hanging)
	_ = i.cmd.Process.Signal(syscall.SIGUSR1) // an error means it has just exited
	s.leave(i, wire.Stop, s.Times.Hanging)
}

// leave asks a child to leave and has it killed if it has not after so long, or earlier if that was said before.
func (s *supervisor) leave(i *incarnation, do string, within time.Duration) {
	killIn := s.ticks(within) + 1
	if i.leaving {
		killIn = min(killIn, i.killIn)
	}
	i.leaving, i.killIn = true, killIn
	i.orders.put(wire.Control{Do: do, Within: within})
	s.changed = true
}

// countDown kills a child that was asked to leave and has not, once.
func (s *supervisor) countDown(i *incarnation) {
	if i.killIn--; i.killIn == 0 {
		s.killChild(i)
	}
}
