package child

import (
	"testing"
	"time"

	"queuekeeper/jobs"
)

// With two starts a second a lane has its next one half a second after the end of its pause, and not at it.
func TestABucketOfALaneIsEmptyAtTheEndOfItsPause(t *testing.T) {
	for name, meanwhile := range map[string]func(*rig) *rig{
		"nothing happens": func(r *rig) *rig { return r },
		"another lane is paused by hand": func(r *rig) *rig {
			r.pause("b", time.Hour)
			eventuallyHeard(r)
			return r
		},
		"another lane is resumed": func(r *rig) *rig {
			r.exec(`insert into lanes (queue, lane, paused_until) values ('q', 'b', 'infinity'); update queues set lanes_paused_until = 'infinity'`)
			r.resume("b")
			eventuallyHeard(r)
			return r
		},
		"the connection breaks": func(r *rig) *rig {
			epoch := value[int](r, `select epoch from queues`)
			r.cut()
			r.until(`select epoch > $1 from queues`, epoch)
			return r
		},
		"a restart": func(r *rig) *rig {
			r.stop()
			next := r.next()
			next.start()
			return next
		},
		"a take-over": func(r *rig) *rig {
			r.stop()
			r.died()
			next := r.next()
			next.start()
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const pause = 3 * time.Second
			r := newRig(t)
			r.worker.Concurrency, r.worker.PerLane = 4, 2
			var s starts
			r.handle("call", s.refuses(jobs.ThrottledIn(jobs.ScopeLane, pause, err429)))
			r.lane("a", "call", 2)
			r.exec(`insert into queues (queue, lanes_empty_at) values ('q', now() - interval '1 day')`)
			r.start()
			r.until(`select exists (select from lanes where lane = 'a' and paused_until > now())`)
			r = meanwhile(r)
			if s.count("a") != 1 {
				t.Fatalf("starts when that was over: got %d, want 1: the pause is too short for this machine", s.count("a"))
			}
			r.done(2)
			at := times(s.of("a"))
			if got, want := at[1].Sub(at[0]), pause+500*time.Millisecond; got < want {
				t.Errorf("first start after the pause of %v: got %v after the refusal, want a turn later than its end, %v", pause, got, want)
			}
			holdsRate(t, "the lane", at, 2, 1)
		})
	}
}

// eventuallyHeard waits until the child has done a Step: it has asked what was changed.
func eventuallyHeard(r *rig) {
	r.t.Helper()
	from := value[string](r, `select settled_at::text from queues`)
	r.until(`select settled_at::text <> $1 from queues`, from)
}
