package supervisor

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

// many are the names of so many stubs that play the same.
func many(script string, count int) (queues []string) {
	for k := range count {
		queues = append(queues, fmt.Sprintf("%s.%d", script, k))
	}
	return queues
}

// What one was killed for is not held against the next: that has the time to come up which any has, silent or not.
func TestNextChildOfOneThatHungHasItsTimeToComeUp(t *testing.T) {
	t.Parallel()
	const watched = 4
	silent := wire.Default().Watched(watched).Silent
	r := start(t, plan{Queues: []string{puppet}, Watched: watched})
	r.tell(t, puppet, "ready")
	r.tell(t, puppet, "be silent")
	cause := r.await(t, "child died", puppet, 1).Cause
	if want := "child hung: it gave no sign of life for " + silent.String(); cause != want {
		t.Errorf("cause: got %q, want %q", cause, want)
	}
	r.await(t, "stub has settings", puppet, 2)
	r.tell(t, puppet, "be silent")
	// Part of the script: longer than a child that is up may be silent, and not as long as one may take to come up.
	time.Sleep(silent * 4 / 3)
	r.tell(t, puppet, "ready")
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if hung := r.all(t, "child hangs: it is asked to leave, and killed if it cannot", puppet, 2); len(hung) > 0 {
		t.Errorf("times the next child was found hanging: got %d, want 0", len(hung))
	}
}

// Whichever the supervisor hears of first, that one child is gone keeps no other from being told, once.
func TestChildKilledInTheMomentOfTERMKeepsNoOtherFromBeingTold(t *testing.T) {
	t.Parallel()
	queues := []string{"drains.a", "drains.b", "drains.c"}
	for round := range 20 {
		r := start(t, plan{Queues: queues, RestartMin: patience})
		r.awaitSome(t, len(queues), "stub is ready", "", 1)
		victim := queues[round%len(queues)]
		pid := r.await(t, "stub is ready", victim, 1).PID
		switch round % 4 {
		case 0, 1:
			_ = syscall.Kill(pid, syscall.SIGKILL)
			r.signal(t, syscall.SIGTERM)
		case 2:
			r.signal(t, syscall.SIGTERM)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have left
		case 3: // the second time, so that no other is there when the signal comes
			kill(t, pid)
			kill(t, r.await(t, "stub is ready", victim, 2).PID)
			r.await(t, "child died", victim, 2)
			r.signal(t, syscall.SIGTERM)
		}
		r.endsButFor(t, victim)
		for _, queue := range queues {
			if queue != victim {
				r.drainedOnce(t, queue)
			}
		}
		if t.Failed() {
			t.Fatalf("round %d failed", round)
		}
	}
}

// endsButFor is ends where the lease of one queue may remain. The exit status says whether it does.
func (r *process) endsButFor(t *testing.T, victim string) {
	t.Helper()
	r.await(t, "supervisor ended", "", 0)
	want := wire.ExitOK
	for _, e := range r.all(t, "a lease may remain until it runs out", "", 0) {
		if e.Queue != victim {
			t.Errorf("lease that may remain: got that of %s, want at most that of %s", e.Queue, victim)
		}
		want = wire.ExitFailed
	}
	r.ends(t, want)
}

// drainedOnce fails unless the first child of a queue was told to drain, once, and then left in order.
func (r *process) drainedOnce(t *testing.T, queue string) {
	t.Helper()
	if told := r.all(t, "stub is told", queue, 0); len(told) != 1 || told[0].Do != wire.Drain {
		t.Errorf("orders to %s: got %v, want drain, once", queue, told)
	}
	ended := r.all(t, "child ended", queue, 1)
	if len(ended) != 1 || !strings.HasPrefix(ended[0].Cause, "exit status 0") {
		t.Errorf("end of %s: got %v, want exit status 0", queue, ended)
	}
}
