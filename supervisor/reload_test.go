package supervisor

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

func TestReloadTouchesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains.stays", "drains.changes", "drains.goes"}, Rate: 1})
	r.awaitSome(t, 3, "stub is ready", "", 1)
	r.reload(t, plan{
		Queues: []string{"drains.stays", "drains.changes", "drains.comes"}, Rate: 1,
		Attempts: map[string]int{"drains.changes": 3},
	})
	r.await(t, "stub is ready", "drains.changes", 2)
	r.await(t, "stub is ready", "drains.comes", 1)
	r.await(t, "child ended", "drains.goes", 1)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if got := len(r.all(t, "child started", "", 0)); got != 5 {
		t.Errorf("processes: got %d, want 3 and 2 more", got)
	}
	for _, e := range r.all(t, "stub has settings", "drains.changes", 2) {
		if len(e.Deaths) != 1 || !(e.Deaths[0].Cause == "exit status 0") {
			t.Errorf("deaths told to the next: got %v, want that it left", e.Deaths)
		}
	}
}

func TestLimitsReachTheRunningChild(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains"}, Rate: 1})
	r.await(t, "stub is ready", "drains", 1)
	r.reload(t, plan{Queues: []string{"drains"}, Rate: 5})
	told := r.await(t, "stub is told", "drains", 1)
	if told.Do != wire.Set || told.Set == nil || told.Set.Worker.MaxJobsPerSecond != 5 {
		t.Errorf("control: got %s %v, want set with 5/s", told.Do, told.Set)
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if got := len(r.all(t, "child started", "", 0)); got != 1 {
		t.Errorf("processes: got %d, want 1", got)
	}
}

func TestFaultyFileChangesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains"}})
	r.await(t, "stub is ready", "drains", 1)
	r.reload(t, plan{Fault: "queues.toml:3: no"})
	r.awaitPicture(t, func(e event) bool { return e.Picture.FailedReload == "queues.toml:3: no" })
	r.reload(t, plan{Queues: []string{"drains"}})
	r.awaitPicture(t, func(e event) bool { return e.Picture.FailedReload == "" })
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if got := len(r.all(t, "child started", "", 0)); got != 1 {
		t.Errorf("processes: got %d, want 1", got)
	}
}

// What it lacked may be there by now, though the file is the same.
func TestReloadTriesAParkedQueueAgain(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"parks"}})
	r.await(t, parked, "parks", 1)
	r.reload(t, plan{Queues: []string{"parks"}})
	r.await(t, parked, "parks", 2)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestQueueThatComesBackCountsItsProcessesOn(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains.a", "drains.b"}})
	r.awaitSome(t, 2, "stub is ready", "", 1)
	r.reload(t, plan{Queues: []string{"drains.a"}})
	r.await(t, "child ended", "drains.b", 1)
	r.reload(t, plan{Queues: []string{"drains.a", "drains.b"}})
	r.await(t, "stub is ready", "drains.b", 2)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestQuietLastsUntilTheNextHangup(t *testing.T) {
	t.Parallel()
	p := plan{Queues: []string{"drains.a", "drains.b"}}
	r := start(t, p)
	a := r.await(t, "stub is ready", "drains.a", 1)
	r.await(t, "stub is ready", "drains.b", 1)
	r.signal(t, syscall.SIGUSR2)
	if told := r.await(t, "stub is told", "drains.b", 1); told.Set == nil || !told.Set.Quiet {
		t.Errorf("control: got %v, want quiet", told)
	}
	kill(t, a.PID)
	if next := r.await(t, "stub has settings", "drains.a", 2); !next.Quiet {
		t.Error("settings of a child started meanwhile: got them without quiet")
	}
	r.await(t, "stub is ready", "drains.a", 2)
	r.signal(t, syscall.SIGCONT) // managers send it beside others; it means nothing
	r.reload(t, p)
	for _, queue := range p.Queues {
		eventuallyTold(t, r, queue, func(c *wire.Changed) bool { return !c.Quiet })
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestStormOfHangupsLosesNoTERM(t *testing.T) {
	t.Parallel()
	p := plan{Queues: []string{"drains.a", "drains.b"}}
	r := start(t, p)
	r.awaitSome(t, 2, "stub is ready", "", 1)
	r.reload(t, p)
	for range 1000 {
		r.signal(t, syscall.SIGHUP)
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if got := len(r.all(t, "child started", "", 0)); got != 2 {
		t.Errorf("processes: got %d, want 2", got)
	}
}

func TestHangupDoesNotCallOffAnEnd(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains-when-let"}})
	r.await(t, "stub is ready", "", 1)
	r.signal(t, syscall.SIGTERM)
	r.await(t, "stub is told", "", 1)
	r.signal(t, syscall.SIGHUP)
	r.await(t, "already ending: hangup ignored", "", 0)
	r.let(t)
	r.ends(t, wire.ExitOK)
	if took := r.all(t, "file taken on", "", 0); len(took) > 0 {
		t.Errorf("reloads while ending: got %d, want none", len(took))
	}
}

// awaitPicture waits for a picture like that.
func (r *process) awaitPicture(t *testing.T, like func(event) bool) event {
	t.Helper()
	var found event
	eventuallyTrue(t, "a picture as wanted", func() bool {
		all := r.all(t, "picture", "", 0)
		i := slices.IndexFunc(all, like)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

func eventuallyTold(t *testing.T, r *process, queue string, like func(*wire.Changed) bool) {
	t.Helper()
	eventuallyTrue(t, "an order as wanted", func() bool {
		return slices.ContainsFunc(r.all(t, "stub is told", queue, 0), func(e event) bool { return e.Set != nil && like(e.Set) })
	})
}

// The later of two signals holds, also if the earlier is still waiting for its turn.
func TestQuietThatComesAfterAWaitingHangupLasts(t *testing.T) {
	t.Parallel()
	p := plan{Queues: []string{"drains"}}
	r := start(t, p)
	r.await(t, "stub is ready", "drains", 1)
	r.write(t, plan{Queues: p.Queues, Hangs: true})
	r.signal(t, syscall.SIGHUP)
	r.await(t, "reload hangs", "", 0)
	r.signal(t, syscall.SIGHUP)
	r.signal(t, syscall.SIGUSR1)
	r.await(t, "status", "", 0)
	r.signal(t, syscall.SIGUSR2)
	eventuallyTold(t, r, "drains", func(c *wire.Changed) bool { return c.Quiet })
	r.let(t)
	r.awaitSome(t, 2, "file taken on", "", 0)
	r.signal(t, syscall.SIGUSR1)
	if got := r.awaitSome(t, 2, "status", "", 0)[1]; !got.Quiet {
		t.Error("status after both reloads: got not quiet, want quiet")
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

// It beats, so it does not hang; but it does not leave either.
func TestReplacedChildThatStaysIsKilledAndItsJobsAreExcused(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"stubborn"}})
	r.await(t, "stub is ready", "stubborn", 1)
	r.reload(t, plan{Queues: []string{"stubborn"}, Attempts: map[string]int{"stubborn": 3}, Shutdown: time.Second})
	r.await(t, "child killed: it did not leave in time", "stubborn", 1)
	if deaths := r.await(t, "stub has settings", "stubborn", 2).Deaths; len(deaths) != 1 || !deaths[0].Ours {
		t.Errorf("deaths told to the next: got %v, want one, excused", deaths)
	}
	r.await(t, "stub is ready", "stubborn", 2)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitFailed) // the next stays too
}
