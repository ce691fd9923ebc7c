package supervisor

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

func TestChildThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	for queue, begin := range map[string]string{
		"silent":   "child hung: it gave no sign of life for",
		"stale":    "child hung: it did nothing for",
		"never-up": "child hung: it did not come up for",
		"mute":     "child hung: it did not come up for",
	} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			r := start(t, plan{Queues: []string{queue, "drains"}, Watched: 20})
			cause := r.await(t, "child died", queue, 1).Cause
			if !strings.HasPrefix(cause, begin) {
				t.Errorf("cause: got %q, want it to begin with %q", cause, begin)
			}
			deaths := r.await(t, "stub has settings", queue, 2).Deaths
			if len(deaths) != 1 || deaths[0].Cause != cause || deaths[0].Ours {
				t.Errorf("deaths told to the next: got %v, want one, %q, its own", deaths, cause)
			}
			want := wire.ExitOK
			if strings.Contains(cause, "come up") && len(r.all(t, "child killed: it did not leave in time", queue, 1)) > 0 {
				want = wire.ExitFailed // nobody knows what it held, and no successor ever had the queue
			}
			r.signal(t, syscall.SIGTERM)
			r.ends(t, want)
			if got := len(r.all(t, "child started", "drains", 0)); got != 1 {
				t.Errorf("processes of the neighbour: got %d, want 1", got)
			}
		})
	}
}

// It says nothing and hears nothing: only a kill ends it.
func TestStoppedChildIsKilledAndReplaced(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains"}, Watched: 20})
	first := r.await(t, "stub is ready", "drains", 1)
	if err := syscall.Kill(first.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.await(t, "child killed: it did not leave in time", "drains", 1)
	r.await(t, "stub is ready", "drains", 2)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

// Whoever was stopped itself cannot tell who was silent.
func TestStoppedSupervisorKillsNobody(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains.a", "drains.b"}, Watched: 20})
	for _, e := range r.awaitSome(t, 2, "stub is ready", "", 1) {
		if err := syscall.Kill(e.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(e.PID, syscall.SIGCONT) }()
	}
	r.signal(t, syscall.SIGSTOP)
	// Part of the script: as long as four times what a child may be silent.
	time.Sleep(4 * wire.Default().Watched(20).Silent)
	r.signal(t, syscall.SIGCONT)
	for _, e := range r.all(t, "stub is ready", "", 1) {
		if err := syscall.Kill(e.PID, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	r.signal(t, syscall.SIGUSR1)
	r.await(t, "status", "", 0)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if hung := r.all(t, "child hangs: it is asked to leave, and killed if it cannot", "", 0); len(hung) > 0 {
		t.Errorf("children found hanging: got %v, want none", hung)
	}
}
