package child

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

func (r *rig) change(change func(*wire.Changed)) {
	to := wire.Changed{Worker: r.worker, ShutdownTimeout: r.set.ShutdownTimeout}
	change(&to)
	r.control <- wire.Control{Do: wire.Set, Set: &to}
}

func TestNewLimitHoldsInTheRunningChild(t *testing.T) {
	r := newRig(t)
	r.worker.MaxJobsPerSecond = 0.001
	r.handle("Quick", func(context.Context, jobs.Job) error { return nil })
	r.insert("Quick", 3)
	r.start()
	r.ready()
	r.change(func(to *wire.Changed) { to.Worker.MaxJobsPerSecond = 100 })
	r.done(3)
	r.until(`select (settings ->> 'max_jobs_per_second')::float8 = 100 from queues`)
	r.want(`select n || '/' || c from queues`, "1/1") // the same process, the same connection
	r.stop()
	r.assertReleased()
}

// The loop has slept since long before the change: that time buys nothing at the new rate.
func TestNewLimitStartsWithNothingSaved(t *testing.T) {
	r := newRig(t)
	r.set.Times.Beat, r.set.Times.Sweep, r.set.Lease = time.Hour, time.Hour, time.Hour
	r.worker.MaxJobsPerSecond = 0.1
	started := make(chan time.Time, 10)
	r.handle("Quick", func(context.Context, jobs.Job) error { started <- time.Now(); return nil })
	r.insert("Quick", 3)
	r.start()
	<-started // a new queue has one turn
	r.until(`select count(*) = 1 from jobs where state = 'done'`)
	<-time.After(700 * time.Millisecond) // part of the script: longer than a turn at the new rate, shorter than at the old
	changed := time.Now()
	r.change(func(to *wire.Changed) { to.Worker.MaxJobsPerSecond = 2 })
	if waited := (<-started).Sub(changed); waited < 400*time.Millisecond {
		t.Errorf("first start at 2/s: got %v after the change, want a turn later, 500ms", waited)
	}
	r.done(3)
	r.stop()
	r.assertReleased()
}

func TestQuietChildFinishesWhatRunsAndClaimsNothing(t *testing.T) {
	r := newRig(t)
	began, end := make(chan bool), make(chan bool)
	r.handle("Slow", func(context.Context, jobs.Job) error { began <- true; <-end; return nil })
	r.insert("Slow", 1)
	r.start()
	<-began
	r.change(func(to *wire.Changed) { to.Quiet = true })
	eventually.OK(t, 20*time.Second, func() error {
		if !r.log.has("quiet: quiet=true jobs=1") {
			return errors.New("log: got no word of quiet, want one")
		}
		return nil
	})
	r.insert("Slow", 1)
	end <- true
	r.until(`select count(*) = 1 from jobs where state = 'done'`)
	epoch := value[string](r, `select expires_at::text from queues`)
	r.until(`select expires_at::text <> $1 from queues`, epoch) // renewed: it has done a Step and claimed nothing
	r.want(`select count(*)::text from jobs where state = 'pending' and attempts = 0`, "1")
	r.change(func(to *wire.Changed) { to.Quiet = false })
	<-began
	end <- true
	r.done(2)
	r.stop()
	r.assertReleased()
}

func TestDumpSaysWhatEveryGoroutineDoes(t *testing.T) {
	log := &logged{t: t}
	requests, done := make(chan os.Signal, 1), make(chan bool)
	go func() {
		defer close(done)
		dump(requests, hclog.New(&hclog.LoggerOptions{Output: log}))
	}()
	requests <- syscall.SIGUSR1
	close(requests)
	<-done
	if text := log.String(); !log.has("child.dump") || !log.has("TestDumpSaysWhatEveryGoroutineDoes") {
		t.Errorf("dump: got %.2000s, want this test and the dump itself in it", text)
	}
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "dump: line=") {
			t.Errorf("line of the dump: got %q, want one of the log", line)
		}
	}
}
