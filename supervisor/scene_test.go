package supervisor

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/wire"
)

// scene is a supervisor in some state, with a puppet as the child of its queue, for one event.
type scene struct {
	*testing.T
	*process
	state, event string
	plan         plan
	n            int // the puppet's number
	exit         int // the status of the supervisor in the end, if all goes as it should
	released     map[string]bool

	starts, files, orders, toLeave int // before the event
}

const puppet = "puppet"

// begin starts the supervisor of a plan. The puppet is not ready yet.
func (s *scene) begin(p plan) {
	s.Helper()
	if p.Queues == nil {
		p.Queues = []string{puppet}
	}
	s.plan, s.n = p, 1
	s.process = start(s.T, p)
	s.sees("stub has settings", 1)
	s.becomes("starting")
}

// count notes what there is before the event.
func (s *scene) count() {
	s.starts, s.files = s.processes(), s.did("file is read")
	s.orders, s.toLeave = s.did("stub is told"), s.leaveOrders()
}

// sees waits for an event of the n-th process of the puppet; 0: of any, or of the supervisor.
func (s *scene) sees(what string, n int) event {
	s.Helper()
	if n == 0 {
		return s.await(s.T, what, "", 0)
	}
	return s.await(s.T, what, puppet, n)
}

// did is how often something happened so far.
func (s *scene) did(what string) int {
	s.Helper()
	return len(s.all(s.T, what, "", 0))
}

// processes is how many were started so far, but for a queue that crashes by itself.
func (s *scene) processes() (count int) {
	s.Helper()
	for _, e := range s.all(s.T, "child started", "", 0) {
		if e.Queue != "crash-at-once" {
			count++
		}
	}
	return count
}

// says has the puppet do something, and waits until it has.
func (s *scene) says(word string) {
	s.Helper()
	s.tell(s.T, puppet, word)
}

// exits has the puppet exit.
func (s *scene) exits(status string) {
	s.Helper()
	s.order(s.T, puppet, "exit "+status)
}

// becomes waits until the supervisor shows the queue to be so; "": not to be there.
func (s *scene) becomes(state string) {
	s.Helper()
	eventually.OK(s.T, patience, func() error {
		if got := s.shown(); got != state {
			return fmt.Errorf("state of the queue: got %q, want %q", got, state)
		}
		return nil
	})
}

// shown is what the supervisor last showed the queue to be.
func (s *scene) shown() string {
	s.Helper()
	pictures := s.all(s.T, "picture", "", 0)
	if len(pictures) == 0 {
		return ""
	}
	for _, c := range pictures[len(pictures)-1].Picture.Children {
		if c.Queue == puppet {
			return c.State
		}
	}
	return ""
}

// status asks the supervisor how it is.
func (s *scene) status() event {
	s.Helper()
	before := s.did("status")
	s.send(syscall.SIGUSR1)
	return s.awaitSome(s.T, before+1, "status", "", 0)[before]
}

func (s *scene) send(sig syscall.Signal) {
	s.Helper()
	s.signal(s.T, sig)
}

// isTold waits for an order to the n-th process of the puppet, and returns it.
func (s *scene) isTold(n int, what string, like func(event) bool) event {
	s.Helper()
	var found event
	eventuallyTrue(s.T, "order to "+what, func() bool {
		told := s.all(s.T, "stub is told", puppet, n)
		i := slices.IndexFunc(told, like)
		if i >= 0 {
			found = told[i]
		}
		return i >= 0
	})
	return found
}

func (s *scene) isToldTo(do string) event {
	s.Helper()
	return s.isTold(s.n, do, func(e event) bool { return e.Do == do })
}

func (s *scene) isToldQuiet(quiet bool) {
	s.Helper()
	s.isTold(s.n, fmt.Sprint("be quiet: ", quiet), func(e event) bool { return e.Set != nil && e.Set.Quiet == quiet })
}

func (s *scene) isToldRate(rate float64) {
	s.Helper()
	s.isTold(s.n, fmt.Sprint("keep to a rate of ", rate), func(e event) bool { return e.Set != nil && e.Set.Worker.MaxJobsPerSecond == rate })
}

// leaveOrders is how often puppets were told to leave.
func (s *scene) leaveOrders() (count int) {
	s.Helper()
	for _, e := range s.all(s.T, "stub is told", "", 0) {
		if e.Do != wire.Set {
			count++
		}
	}
	return count
}

// same checks that of something there are as many as before.
func (s *scene) same(what string, before, now int) {
	s.Helper()
	if now != before {
		s.Errorf("%s: got %d, want %d as before", what, now, before)
	}
}
