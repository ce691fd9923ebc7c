package supervisor

import (
	"time"

	"queuekeeper/internal/wire"
)

// state is how far a supervisor has come. It only moves upward: nothing calls off an end once begun.
type state int

const (
	running  state = iota // children are started, and started again
	draining              // children finish what runs, start nothing
	stopping              // children end what runs
	killing               // the time is up: what was left has been killed
)

func (s state) String() string { return [...]string{"running", "draining", "stopping", "killing"}[s] }

// interrupted is INT: drain, and again: stop.
func (s *supervisor) interrupted() {
	if s.state < draining {
		s.end(draining, "INT")
	} else {
		s.end(stopping, "INT again")
	}
}

// end moves the supervisor up to draining or stopping and tells the children, all at once. Asked for what
// is under way already it does nothing: process managers often send a signal twice.
func (s *supervisor) end(to state, why string) {
	if to <= s.state {
		if !s.repeated {
			s.Log.Info("already ending: signal ignored", "signal", why, "within", s.left())
		}
		s.repeated = true
		return
	}
	if s.state == running {
		s.endsBy = time.Now().Add(s.File.ShutdownTimeout)
		s.deadline = time.After(s.File.ShutdownTimeout)
		s.notify.stopping()
	}
	s.state = to
	s.changed = true
	do := wire.Drain
	if to == stopping {
		do = wire.Stop
	}
	s.Log.Info("children told to leave", "do", do, "signal", why, "within", s.left())
	if why == "INT" {
		s.Log.Info("what runs may finish; INT again ends it now")
	}
	for _, c := range s.children {
		c.startAt = time.Time{}
		if c.alive != nil {
			c.alive.orders.put(wire.Control{Do: do, Within: s.left()})
		}
	}
}

// left is what remains of the time to end in. Never 0: to a child that would mean it was not said.
func (s *supervisor) left() time.Duration {
	return max(time.Until(s.endsBy).Round(time.Millisecond), time.Millisecond)
}

// kill ends what has not left in time. Whoever waits for the process then kills the rest of its session.
func (s *supervisor) kill() {
	s.state = killing
	for _, c := range s.children {
		if c.alive != nil {
			s.killChild(c.alive)
		}
	}
}

func (s *supervisor) killChild(i *incarnation) {
	c := i.child
	s.Log.Error("child killed: it did not leave in time", "queue", c.queue(), "pid", i.pid, "n", c.n)
	i.killed = i.hung == ""  // what a child that hangs was running may be why it does
	_ = i.cmd.Process.Kill() // an error means it has just exited
	c.leased = true          // it may have held the lease, ready or not
}

// exitStatus is what Run returns when no child is left.
func (s *supervisor) exitStatus() int {
	status := wire.ExitOK
	for _, c := range s.children {
		if c.leased && time.Now().Before(c.leaseEnd) {
			s.Log.Warn("a lease may remain until it runs out", "queue", c.queue(), "for", time.Until(c.leaseEnd).Round(time.Millisecond))
			status = wire.ExitFailed
		}
	}
	return status
}
