package supervisor

import (
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// checkDelay checks the delay after the failures-th failure in a row, with the default times divided.
func checkDelay(t *testing.T, divided time.Duration, failures int, got time.Duration) {
	t.Helper()
	times := wire.Default().Divided(divided)
	want := time.Duration(0)
	if failures > 1 {
		want = min(times.RestartMin<<(failures-2), times.RestartMax)
	}
	if got < want*8/10 || got > want*12/10 {
		t.Errorf("delay after failure %d: got %v, want %v give or take a fifth", failures, got, want)
	}
}

func TestKilledChildIsRestartedAtOnceThenLater(t *testing.T) {
	t.Parallel()
	const divided = 10 // a busy machine must not be slow enough for a failure to be forgotten
	r := start(t, plan{Queues: []string{"drains.a", "drains.b"}, Divided: divided})
	r.await(t, "stub is ready", "drains.b", 1)
	r.await(t, "stub is ready", "drains.a", 1)
	before := r.openFiles(t)
	for n := 1; n <= 4; n++ {
		kill(t, r.await(t, "stub is ready", "drains.a", n).PID)
		died := r.await(t, "child died", "drains.a", n)
		checkDelay(t, divided, n, died.AgainIn)
		if want := "child killed by signal 9"; died.Cause != want {
			t.Errorf("cause: got %q, want %q", died.Cause, want)
		}
		next := r.await(t, "child started", "drains.a", n+1)
		if waited := next.At.Sub(died.At); waited < died.AgainIn-time.Millisecond {
			t.Errorf("restart %d: got it after %v, want it after %v", n, waited, died.AgainIn)
		}
		// The one before was ready, so of the deaths only its own is news.
		deaths := r.await(t, "stub has settings", "drains.a", n+1).Deaths
		if want := []jobs.Death{{N: n, Cause: died.Cause}}; !reflect.DeepEqual(deaths, want) {
			t.Errorf("deaths told to incarnation %d: got %v, want %v", n+1, deaths, want)
		}
	}
	r.await(t, "stub is ready", "drains.a", 5)
	if after := r.openFiles(t); after != before {
		t.Errorf("files open in the supervisor after four restarts: got %d, want %d as before", after, before)
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if got := len(r.all(t, "child started", "drains.b", 0)); got != 1 {
		t.Errorf("children of the other queue: got %d, want the first only", got)
	}
}

func TestCrashLoopSlowsDownAndNeverEnds(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"crash-at-once", "drains"}})
	r.await(t, "stub is ready", "drains", 1)
	r.await(t, "child died", "crash-at-once", 9) // the eighth delay is at its upper end
	var deaths []jobs.Death
	for n := 1; n <= 9; n++ {
		checkDelay(t, 100, n, r.await(t, "child died", "crash-at-once", n).AgainIn)
		got := r.await(t, "stub has settings", "crash-at-once", n).Deaths
		if len(got)+len(deaths) > 0 && !reflect.DeepEqual(got, deaths) {
			t.Errorf("deaths told to incarnation %d: got %v, want %v", n, got, deaths)
		}
		deaths = append(deaths, jobs.Death{N: n, Cause: "exit status 3"})
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK) // it was never ready: no lease can remain
	if got := len(r.all(t, "child started", "drains", 0)); got != 1 {
		t.Errorf("children of the other queue: got %d, want the first only", got)
	}
}

func TestLongReadyForgetsEarlierFailures(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"lives-long-at-third"}})
	for n, failures := range map[int]int{1: 1, 2: 2, 3: 1, 4: 2, 5: 3} {
		checkDelay(t, 100, failures, r.await(t, "child died", "lives-long-at-third", n).AgainIn)
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitFailed)
}

func TestChildWithWrongSettingsIsParked(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"parks", "drains"}})
	if got, want := r.await(t, parked, "parks", 1).Detail, "no such command"; got != want {
		t.Errorf("reason of the parking: got %q, want %q", got, want)
	}
	for n := 1; n <= 2; n++ { // the other queue goes on, restarts and all
		kill(t, r.await(t, "stub is ready", "drains", n).PID)
	}
	r.await(t, "stub is ready", "drains", 3)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if got := len(r.all(t, "child started", "parks", 0)); got != 1 {
		t.Errorf("starts of the parked child: got %d, want 1", got)
	}
}

// A child that asks for a new process has failed in nothing: no back-off grows.
func TestChildThatAsksForANewProcessGetsItAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"later"}, Divided: 20})
	for n := 1; n <= 3; n++ {
		if e := r.await(t, "child asks for a new process", "later", n); e.AgainIn > wire.Default().RestartMin/20 {
			t.Errorf("delay after process %d: got %v, want at most a twentieth of %v", n, e.AgainIn, wire.Default().RestartMin)
		}
	}
	r.await(t, "stub is ready", "later", 4)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestCrashTextIsTheCauseOfADeath(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"panics"}})
	cause := r.await(t, "child died", "panics", 1).Cause
	if want := "exit status 2: panic: boom in a handler\n"; !strings.HasPrefix(cause, want) || !strings.Contains(cause, "stub_test.go") {
		t.Errorf("cause: got %q, want it to begin with %q and to say where", cause, want)
	}
	if len(cause) > 2000 {
		t.Errorf("cause: got %d bytes, want its beginning only", len(cause))
	}
	r.await(t, "stub is ready", "panics", 2)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestSupervisorOutlivesTheParkingOfAll(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"parks.a", "parks.b"}})
	r.awaitSome(t, 2, parked, "", 1)
	r.signal(t, syscall.SIGUSR1)
	if got := r.awaitSome(t, 2, "status of queue", "", 0); got[0].State != "parked" || got[0].Detail != "no such command" {
		t.Errorf("status: got %s, %q, want parked, with the reason", got[0].State, got[0].Detail)
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestLeftoversOfADeadChildAreGoneBeforeItsSuccessorStarts(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"leaves-a-sleep"}})
	for n := 1; n <= 3; n++ {
		kill(t, r.await(t, "stub is ready", "leaves-a-sleep", n).PID)
		if r.await(t, "stub looks for the sleep before it", "leaves-a-sleep", n+1).Alive {
			t.Errorf("command of incarnation %d: got it alive when %d started, want it dead", n, n+1)
		}
	}
	r.await(t, "stub is ready", "leaves-a-sleep", 4)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestPipesHeldOpenByAStrangerHoldUpNothing(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"leaves-a-holder"}})
	holder := r.await(t, "stub leaves a holder", "leaves-a-holder", 1).Holder
	kill(t, r.await(t, "stub is ready", "leaves-a-holder", 1).PID)
	r.await(t, "stub is ready", "leaves-a-holder", 2)
	kill(t, holder)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestOnlyTheFirstAndTheLatestOfManyDeathsAreKept(t *testing.T) {
	c := &child{}
	for n := 1; n <= maxDeaths+50; n++ {
		c.mourn(jobs.Death{N: n})
	}
	got := fmt.Sprint(len(c.deaths), c.deaths[0].N, c.deaths[1].N, c.deaths[maxDeaths-1].N)
	if want := fmt.Sprint(maxDeaths, 1, 52, maxDeaths+50); got != want {
		t.Errorf("number of deaths kept, first, second, last: got %s, want %s", got, want)
	}
}
