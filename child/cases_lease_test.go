package child

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/handler"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// The machine has slept for ten minutes: timers stood still, the boot clock did not, and a Step that was sent before
// has no answer yet. What was claimed is not begun on the word of a lease that may be another's by now, and what runs
// is told to end.
func TestNothingIsBegunAfterASleepBeforeTheDatabaseWasAsked(t *testing.T) {
	for name, c := range map[string]struct {
		slept time.Duration
		want  int // starts
	}{
		"ten minutes": {10 * time.Minute, 0},
		"not at all":  {0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.set.Lease, r.worker.Concurrency = 30*time.Second, 3
			started := make(chan int64, 2)
			r.handle("note", func(_ context.Context, j jobs.Job) error { started <- j.ID; return nil })
			l := r.holding()
			ctx, end := context.WithCancelCause(context.Background())
			l.running[3] = &run{Claimed: claimedJob(3), ctx: ctx, cancel: end, giveUp: time.Now().Add(time.Minute)}
			l.planned = []jobs.Claimed{claimedJob(1), claimedJob(2)}
			l.until -= c.slept

			l.advance()
			for range c.want {
				<-started
			}
			if got := len(l.running) + len(l.finished) - 1; len(started) > 0 || got != 2 {
				t.Errorf("starts beyond the %d wanted: got %d; jobs of two accounted for: got %d", c.want, len(started), got)
			}
			for _, e := range l.finished[:2-c.want] {
				if e.Kind != jobs.KindExcused {
					t.Errorf("end of a job that was not begun: got %s, want %s", e.Kind, jobs.KindExcused)
				}
			}
			if got, want := context.Cause(ctx) == errNotOurs, c.want == 0; got != want {
				t.Errorf("context of the job that runs: got %v as its cause, want the lost lease: %v", context.Cause(ctx), want)
			}
		})
	}
}

// holding is a loop that has just renewed its lease, waits for the answer to a Step and is turned by the test.
func (r *rig) holding() *loop {
	r.t.Helper()
	r.set.Worker = r.worker
	log := hclog.New(&hclog.LoggerOptions{Output: r.log})
	handlers, err := handler.New(r.worker, jobs.Handlers{queue: r.own}, log)
	if err != nil {
		r.t.Fatal(err)
	}
	l := newLoop(r.set, handlers, log)
	l.say = func(wire.Status) {}
	l.now = time.Now()
	l.online, l.held, l.mayHold, l.busy, l.epoch = true, true, true, true, 1
	l.renewed(procs.BootClock())
	return l
}

func claimedJob(id int64) jobs.Claimed {
	return jobs.Claimed{Job: jobs.Job{ID: id, Queue: queue, Name: "note", Args: []byte(`{}`), Attempt: 1}, Counted: 1, Limit: 20}
}
