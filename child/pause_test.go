package child

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// refuses is a handler that notes its starts and is refused as often as says.
func (s *starts) refuses(says ...error) jobs.Handler {
	refusals := make(chan error, len(says))
	for _, err := range says {
		refusals <- err
	}
	return func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		select {
		case err := <-refusals:
			return err
		default:
			return nil
		}
	}
}

var err429 = errors.New("429")

// gaps are those between starts.
func gaps(at []time.Time) (gaps []time.Duration) {
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i].Sub(at[i-1]))
	}
	return gaps
}

func TestScopeSaysWhatPauses(t *testing.T) {
	for _, c := range []struct {
		file string
		err  error
		lane bool // that of the refused job pauses, not the queue
	}{
		{"queue", jobs.Throttled(2*time.Second, err429), false},
		{"lane", jobs.Throttled(2*time.Second, err429), true},
		{"queue", jobs.ThrottledIn(jobs.ScopeLane, 2*time.Second, err429), true},
		{"lane", jobs.ThrottledIn(jobs.ScopeQueue, 2*time.Second, err429), false},
		{"", jobs.Throttled(2*time.Second, err429), false},
	} {
		_, scope, _ := jobs.AsThrottled(c.err)
		t.Run(fmt.Sprintf("the file says %q, the handler %q", c.file, scope), func(t *testing.T) {
			r := newRig(t)
			r.worker.Concurrency, r.worker.PauseScope = 4, c.file
			var s starts
			r.handle("refused", s.refuses(c.err))
			r.handle("quick", s.quick)
			r.lane("a", "refused", 1)
			r.start()
			r.until(`select throttled = 1 from jobs where id = 1`)
			refused := s.of("a")[0].at
			r.lane("a", "quick", 20)
			r.lane("b", "quick", 20)
			r.done(41)
			a, b := s.of("a")[1].at.Sub(refused), s.of("b")[0].at.Sub(refused)
			if a < 2*time.Second || a > 3*time.Second {
				t.Errorf("lane of the refused job: got its next start %v later, want 2s", a)
			}
			if b < 2*time.Second != c.lane {
				t.Errorf("other lane: got its first start %v later, want it before the end of the pause, 2s: %v", b, c.lane)
			}
			r.want(`select concat_ws('/', attempts, excused, throttled) from jobs where id = 1`, "2/1/1")
			if c.lane {
				r.want(`select concat_ws(' ', lane, pause_reason) from lanes`, "a 429")
				r.want(`select (paused_until = '-infinity')::text from queues`, "true")
			} else {
				r.want(`select pause_reason from queues`, "429")
				r.want(`select count(*)::text from lanes`, "0")
			}
		})
	}
}

// slowStep has one Step take a quarter of a second: from then on jobs are claimed that long before their turn.
func (r *rig) slowStep() {
	r.t.Helper()
	tx, err := testdb.Connect(r.t, r.url).Begin(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := tx.Exec(r.t.Context(), `select from queues for update`); err != nil {
		r.t.Fatal(err)
	}
	r.until(`select exists (select from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'queuekeeper%'
		and datname = current_database())`)
	<-time.After(260 * time.Millisecond) // part of the script
	if err := tx.Rollback(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// A job is claimed and waits for its turn when the refusal of another comes.
func TestAPausedLaneHoldsBackWhatIsClaimedAlready(t *testing.T) {
	r := newRig(t)
	r.set.Lease = 30 * time.Second
	r.worker.Concurrency, r.worker.MaxJobsPerSecond = 10, 3
	var s starts
	refuse := make(chan struct{})
	r.handle("refused", func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		<-refuse
		return jobs.ThrottledIn(jobs.ScopeLane, time.Hour, err429)
	})
	r.handle("quick", s.quick)
	r.lane("a", "refused", 1)
	r.start()
	s.reach(r, "a", 1)
	r.lane("a", "quick", 20)
	r.slowStep() // the second comes with it
	s.reach(r, "a", 2)
	r.until(`select state = 'running' from jobs where id = 3`)
	claimed := s.count("")
	close(refuse)
	r.until(`select count(*) = 0 from jobs where state = 'running'`)
	r.lane("b", "quick", 3)
	s.reach(r, "b", 3)
	if got := s.count("a"); got > claimed {
		t.Errorf("starts in the paused lane: got %d, want those before the pause, %d", got, claimed)
	}
	r.want(`select concat_ws('/', state, attempts, excused, throttled, started_at is null) from jobs where id = 3`, "pending/1/1/0/t")
}

func TestNothingStartsInAPauseAndNoBurstFollows(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency, r.worker.MaxJobsPerSecond, r.worker.Burst = 5, 20, 5
	r.worker.MaxAttempts = 2
	var s starts
	r.handle("call", s.refuses(jobs.Throttled(700*time.Millisecond, err429), nil, nil, nil, nil, nil, nil, nil,
		jobs.Throttled(time.Second, err429)))
	r.insert("call", 40)
	r.start()
	r.done(40)
	r.want(`select concat_ws('/', sum(attempts), sum(excused), sum(throttled)) from jobs where throttled > 0`, "4/2/2")
	r.want(`select (sum(attempts - excused) = 40)::text from jobs`, "true")
	at, pauses := times(s.of("")), 0
	holdsRate(t, "starts", at, 20, 5)
	for i, gap := range gaps(at) {
		if gap < 600*time.Millisecond {
			continue
		}
		pauses++
		// The bucket is empty at the end of the pause: the next ones come one by one.
		if next := gaps(at[i+1:]); len(next) > 3 && at[i+5].Sub(at[i+1]) < 180*time.Millisecond {
			t.Errorf("after a pause of %v: starts after %v, want one every 50ms", gap, next[:4])
		}
	}
	if pauses != 2 {
		t.Errorf("pauses between starts: got %d, want 2: %v", pauses, gaps(at))
	}
}

func TestAPauseSurvivesARestartAndATakeOver(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		lane string
	}{
		{"of the queue", jobs.Throttled(4*time.Second, err429), ""},
		{"of a lane", jobs.ThrottledIn(jobs.ScopeLane, 4*time.Second, err429), "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.worker.Concurrency = 4
			var s starts
			r.handle("call", s.refuses(c.err))
			r.lane("a", "call", 1)
			r.start()
			r.until(`select throttled = 1 from jobs`)
			refused := s.of("")[0].at
			r.lane("a", "call", 3)
			r.stop()
			second := r.next()
			second.start()
			second.ready()
			second.stop()
			second.died()
			third := second.next()
			third.start()
			third.ready()
			if c.lane != "" {
				third.lane("b", "call", 3)
				s.reach(third, "b", 3)
			}
			third.until(`select count(*) = 4 from jobs where state = 'done' and lane = 'a'`)
			for _, one := range s.of("a")[1:] {
				if waited := one.at.Sub(refused); waited < 4*time.Second {
					t.Errorf("start %v after the refusal, want at least 4s", waited)
				}
			}
			if waited := s.of("a")[1].at.Sub(refused); waited > 6*time.Second {
				t.Errorf("went on %v after the refusal, want 4s", waited)
			}
		})
	}
}

func TestPausesNobodyTimedDoubleUntilASuccess(t *testing.T) {
	for _, scope := range []jobs.Scope{jobs.ScopeQueue, jobs.ScopeLane} {
		t.Run(string(scope), func(t *testing.T) {
			r := newRig(t)
			r.set.Times.Throttled, r.set.Times.ThrottledMax = 200*time.Millisecond, 500*time.Millisecond
			var s starts
			no := jobs.ThrottledIn(scope, 0, err429)
			r.handle("call", s.refuses(no, no, no, no, nil, no))
			r.lane("a", "call", 1)
			r.start()
			r.until(`select state = 'done' from jobs`)
			r.lane("a", "call", 1)
			r.done(2)
			got := gaps(times(s.of("a")))
			for i, want := range []time.Duration{200, 400, 500, 500, 0, 200} {
				want *= time.Millisecond
				if got[i] < want || want > 0 && got[i] > want+190*time.Millisecond {
					t.Errorf("gap %d: got %v, want %v; all: %v", i, got[i], want, got)
				}
			}
		})
	}
}

// Refusals of one lane say nothing of another.
func TestPausesNobodyTimedDoubleByLane(t *testing.T) {
	r := newRig(t)
	r.worker.PauseScope = "lane"
	r.set.Times.Throttled, r.set.Times.ThrottledMax = 300*time.Millisecond, time.Hour
	var a, b starts
	no := jobs.Throttled(0, err429)
	r.handle("a", a.refuses(no, no))
	r.handle("b", b.refuses(no))
	r.lane("a", "a", 1)
	r.start()
	r.until(`select throttled = 2 from jobs`)
	r.lane("b", "b", 1)
	r.done(2)
	for name, got := range map[string]struct{ gaps, want []time.Duration }{
		"a": {gaps(times(a.of(""))), []time.Duration{300 * time.Millisecond, 600 * time.Millisecond}},
		"b": {gaps(times(b.of(""))), []time.Duration{300 * time.Millisecond}},
	} {
		for i, want := range got.want {
			if got.gaps[i] < want || got.gaps[i] > want+250*time.Millisecond {
				t.Errorf("lane %s: gaps %v, want %v", name, got.gaps, got.want)
			}
		}
	}
}

func TestNoAPIPausesForMoreThanADay(t *testing.T) {
	for _, err := range []error{jobs.Throttled(1000*time.Hour, err429), jobs.ThrottledIn(jobs.ScopeLane, 1000*time.Hour, err429)} {
		r := newRig(t)
		var s starts
		r.handle("call", s.refuses(err))
		r.lane("a", "call", 1)
		r.start()
		r.until(`select throttled = 1 from jobs`)
		r.want(`select (greatest(q.paused_until, l.paused_until) - now() between interval '23 h 59 min' and interval '24 h')::text
			from queues q left join lanes l on true`, "true")
		if !r.log.has("[WARN]  the API said later than a day") {
			t.Errorf("log: got no warning that the pause is cut:\n%s", r.log)
		}
	}
}
