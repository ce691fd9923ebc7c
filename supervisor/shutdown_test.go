package supervisor

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/wire"
)

func TestTERMDrainsAllAtOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, 5} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			queues := []string{"drains-when-let.a", "drains-when-let.b", "drains-when-let.c", "drains-when-let.d"}
			r := start(t, plan{Queues: queues})
			r.awaitSome(t, len(queues), "stub is ready", "", 1)
			r.signal(t, syscall.SIGTERM)
			r.awaitSome(t, len(queues), "stub is told", "", 1) // all of them, while none can leave
			for range times - 1 {
				r.signal(t, syscall.SIGTERM)
				r.await(t, "already ending: signal ignored", "", 0)
			}
			r.let(t)
			r.ends(t, wire.ExitOK)
			told := r.all(t, "stub is told", "", 0)
			if len(told) != len(queues) {
				t.Errorf("controls: got %d, want one to each of %d children", len(told), len(queues))
			}
			for _, e := range told {
				if e.Do != wire.Drain || e.Within <= 0 || e.Within > patience {
					t.Errorf("control of %s: got %s within %v, want drain within %v", e.Queue, e.Do, e.Within, patience)
				}
			}
		})
	}
}

func TestSecondINTStopsWithinWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"needs-stop"}})
	r.await(t, "stub is ready", "needs-stop", 1)
	r.signal(t, syscall.SIGINT)
	r.await(t, "stub is told", "needs-stop", 1)
	r.signal(t, syscall.SIGINT)
	r.ends(t, wire.ExitOK)
	told := r.all(t, "stub is told", "needs-stop", 1)
	if len(told) != 2 || told[0].Do != wire.Drain || told[1].Do != wire.Stop {
		t.Fatalf("controls: got %v, want drain, then stop", told)
	}
	if told[1].Within > told[0].Within {
		t.Errorf("time to stop in: got %v, want no more than the %v to drain in", told[1].Within, told[0].Within)
	}
}

func TestQUITStops(t *testing.T) {
	t.Parallel()
	for _, first := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGTERM} {
		t.Run("after "+first.String(), func(t *testing.T) {
			r := start(t, plan{Queues: []string{"needs-stop.a", "needs-stop.b"}})
			r.awaitSome(t, 2, "stub is ready", "", 1)
			r.signal(t, first)
			if first != syscall.SIGQUIT {
				r.awaitSome(t, 2, "stub is told", "", 1)
				r.signal(t, syscall.SIGQUIT)
			}
			r.ends(t, wire.ExitOK)
		})
	}
}

func TestEndOfContextDrains(t *testing.T) {
	t.Parallel()
	var in io.Closer
	r := start(t, plan{Queues: []string{"drains"}, StdinEnds: true}, func(cmd *exec.Cmd) {
		in, _ = cmd.StdinPipe()
	})
	r.await(t, "stub is ready", "drains", 1)
	if err := in.Close(); err != nil {
		t.Fatalf("close standard input: %v", err)
	}
	r.ends(t, wire.ExitOK)
	if got := r.await(t, "stub is told", "drains", 1).Do; got != wire.Drain {
		t.Errorf("control: got %q, want %q", got, wire.Drain)
	}
}

func TestWhatIsLeftAtTheDeadlineIsKilled(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	// The settings of the deaf one do not fit into its pipe, and still its supervisor is not held up.
	r := start(t, plan{Queues: []string{"deaf", "stubborn", "drains", "leaves-a-sleep"}, Shutdown: timeout, Padding: 1 << 20})
	r.awaitSome(t, 3, "stub is ready", "", 1)
	r.await(t, "stub is deaf", "deaf", 0)
	began := time.Now()
	r.signal(t, syscall.SIGINT)
	r.await(t, "stub is told", "stubborn", 1)
	time.Sleep(timeout / 4) // not waiting: somebody presses the keys again
	r.signal(t, syscall.SIGINT)
	r.ends(t, wire.ExitFailed)
	if took := time.Since(began); took < timeout {
		t.Errorf("shutdown with children that stay: got %v, want at least %v", took, timeout)
	}
	for queue, want := range map[string]string{
		"deaf":     "child killed by signal 9",
		"stubborn": "child killed by signal 9",
		"drains":   "exit status 0",
	} {
		if got := r.await(t, "child ended", queue, 1).Cause; got != want {
			t.Errorf("end of %s: got %q, want %q", queue, got, want)
		}
	}
	told := r.all(t, "children told to leave", "", 0)
	if len(told) != 2 {
		t.Fatalf("orders to leave: got %d, want 2", len(told))
	}
	if most := timeout - told[1].At.Sub(told[0].At)/2; told[1].Within > most {
		t.Errorf("time to stop in: got %v, want at most %v: the time does not start anew", told[1].Within, most)
	}
}

func TestExitStatusTellsWhetherALeaseMayRemain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queue, after string
		n, want      int
	}{
		{"unreleased", "stub is ready", 1, wire.ExitFailed},
		{"crash-ready", "child died", 2, wire.ExitFailed},
		{"crash-at-once", "child died", 2, wire.ExitOK},
		{"crash-bidding", "child died", 2, wire.ExitFailed}, // who knows what came of it
		{"crash-ready-once", "child says", 2, wire.ExitOK},  // its successor stands by for another's lease
	} {
		t.Run(c.queue, func(t *testing.T) {
			r := start(t, plan{Queues: []string{c.queue, "drains"}})
			r.await(t, "stub is ready", "drains", 1)
			r.await(t, c.after, c.queue, c.n)
			r.signal(t, syscall.SIGTERM)
			r.ends(t, c.want)
		})
	}
}

func TestChildrenOfAKilledSupervisorLeave(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains.a", "stubborn", "drains.b"}})
	r.awaitSome(t, 3, "stub is ready", "", 1)
	r.signal(t, syscall.SIGKILL)
	r.awaitSome(t, 3, "stub sees the supervisor gone", "", 1)
	_ = r.cmd.Wait()
	eventually.OK(t, patience, func() error {
		if left := r.marked(t); len(left) > 0 {
			return fmt.Errorf("processes left: got %v, want none", left)
		}
		return nil
	})
}

func TestTERMAtAnyMomentOfTheStartLeavesNothing(t *testing.T) {
	t.Parallel()
	var queues []string
	for k := range 20 {
		queues = append(queues, fmt.Sprintf("drains.%d", k))
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := start(t, plan{Queues: queues})
		// Not waiting: between any two of the starts, and a random moment after.
		r.awaitSome(t, random.IntN(len(queues)), "child started", "", 0)
		r.await(t, "supervisor started", "", 0)
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Millisecond))))
		r.signal(t, syscall.SIGTERM)
		r.ends(t, wire.ExitOK)
		if t.Failed() {
			t.Fatalf("seed %d failed", seed)
		}
	}
}

// What an incarnation left behind days ago has run out since.
func TestLeaseThatHasRunOutRemainsNoMore(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration]int{29 * time.Second: wire.ExitFailed, 31 * time.Second: wire.ExitOK} {
		s := &supervisor{Options: Options{Log: hclog.NewNullLogger()}}
		s.children = []*child{{leased: true, leaseEnd: time.Now().Add(30*time.Second - ago)}}
		if got := s.exitStatus(); got != want {
			t.Errorf("exit status %v after the end of the holder, with a lease of 30s: got %d, want %d", ago, got, want)
		}
	}
}
