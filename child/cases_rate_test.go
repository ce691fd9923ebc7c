package child

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// RA01: idle time is not saved up, in a running child either.
func TestAnIdleQueueStartsWithoutABurst(t *testing.T) {
	r := newRig(t)
	r.worker.MaxJobsPerSecond, r.worker.Concurrency = 5, 4
	var s starts
	r.handle("quick", s.quick)
	r.insert("quick", 5)
	r.start()
	r.done(5)
	<-time.After(1500 * time.Millisecond) // part of the script
	r.insert("quick", 10)
	r.done(15)
	holdsRate(t, "starts", times(s.of("")), 5, 1)
}

// RA02: a first run, a retry, a job requeued from the dead and one brought back after a death all take a turn.
func TestEveryStartTakesATurn(t *testing.T) {
	r := newRig(t)
	r.worker.MaxJobsPerSecond, r.worker.Concurrency, r.worker.MaxAttempts = 20, 8, 5
	r.set.Times.RetryBase, r.set.Times.RetryMax = time.Millisecond, time.Millisecond
	var s starts
	r.handle("fail", func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		return errors.New("no luck")
	})
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, pid, expires_at)
		values ('q', 7, 's0', 1, 1, 'elsewhere', 1, now() - interval '1 s')`)
	r.exec(`insert into jobs (queue, name, state, epoch, attempts, max_attempts, locked_at)
		select 'q', 'fail', 'running', 7, 1, 5, now() from generate_series(1, 5)`)
	r.insert("fail", 7)
	r.start()
	r.until(`select bool_and(state = 'dead') from jobs`)
	before := s.count("") // 7 · 5 + 5 · 4
	changed, err := jobs.Schema("").Requeue(t.Context(), r.conn, 1, 2, 3, 8, 9)
	if err != nil || len(changed) != 5 {
		t.Fatalf("requeue: %v, %v; want 5 jobs", changed, err)
	}
	r.until(`select bool_and(state = 'dead') and sum(requeues) = 5 from jobs`)
	if got, want := s.count(""), before+25; before < 55 || got != want {
		t.Errorf("starts: got %d and then %d, want 55 or more and then 25 more", before, got)
	}
	holdsRate(t, "starts", times(s.of("")), 20, 1)
}

// RA07: 429 uses up no attempts, however often.
func TestTenRefusalsLeaveTheAttemptsAlone(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 3
	var s starts
	r.handle("call", s.refuses(slices.Repeat([]error{jobs.Throttled(50*time.Millisecond, err429)}, 10)...))
	r.insert("call", 1)
	r.start()
	r.done(1)
	r.want(`select concat_ws('/', attempts, excused, throttled) from jobs`, "11/10/10")
	for i, gap := range gaps(times(s.of(""))) {
		if gap < 50*time.Millisecond {
			t.Errorf("gap %d: got %v, want at least what the API said, 50ms", i, gap)
		}
	}
}

// RA07: 429 for ever. From its 21st refusal on a job has its failures counted while others fare better, and is dead after
// three of those.
func TestAJobThatIsRefusedForEverIsDeadInTheEnd(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 3
	var s starts
	r.handle("call", func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		return jobs.Throttled(time.Millisecond, errors.New("429 too many requests"))
	})
	r.handle("ok", ok)
	r.insert("call", 1)
	r.start()
	r.until(`select throttled >= 25 from jobs where name = 'call'`) // alone, it goes on
	r.want(`select (state <> 'dead' and attempts - excused <= 1)::text from jobs where name = 'call'`, "true")
	for n := 1; value[string](r, `select state from jobs where name = 'call'`) != "dead"; n++ {
		r.insert("ok", 1)
		r.until(`select count(*) = $1 from jobs where name = 'ok' and state = 'done'`, n)
		if n > 500 {
			t.Fatalf("still not dead\n%s", r.rows())
		}
	}
	r.want(`select concat_ws(' ', attempts - excused, last_error) from jobs where name = 'call'`, "3 429 too many requests")
}

// RA10: two supervisors, one queue. The second stands by and takes over when the first has left, then when it has died.
func TestTwoSupervisorsTogetherKeepTheRate(t *testing.T) {
	r := newRig(t)
	r.worker.MaxJobsPerSecond, r.worker.Concurrency = 10, 4
	var s starts
	r.handle("quick", s.quick)
	r.insert("quick", 60)
	r.start()
	r.ready()
	second := r.next()
	second.set.Supervisor, second.set.N = "s2", 1
	second.start()
	second.status(wire.StandingBy)
	s.reach(r, "", 15)
	r.stop()
	left := time.Now()
	second.ready()
	if took := time.Since(left); took > 2*time.Second {
		t.Errorf("the second supervisor took over after %v, want at once", took)
	}
	s.reach(second, "", 35)
	second.stop()
	second.died()
	third := second.next()
	third.set.Supervisor = "s3"
	third.start()
	third.done(60)
	holdsRate(t, "starts of all", times(s.of("")), 10, 1)
}

// RA10, with a process that is killed.
func TestTheRateHoldsOverKills(t *testing.T) {
	m := newMarking(t)
	m.set.Worker.MaxJobsPerSecond, m.set.Worker.Concurrency = 20, 4
	m.insert("Mark", 70)
	m.start()
	for _, n := range []int{5, 12, 25, 31, 48} {
		m.killAt(n)
	}
	m.done(70)
	holdsRate(t, "starts", times(m.starts()), 20, 1)
}

// RA11: 5/s with a backlog, then 1/s, 20/s and no limit.
func TestEachNewLimitHoldsAtOnceAndWithoutABurst(t *testing.T) {
	r := newRig(t)
	r.worker.MaxJobsPerSecond, r.worker.Concurrency = 5, 4
	var s starts
	r.handle("quick", s.quick)
	r.insert("quick", 3000)
	r.start()
	s.reach(r, "", 8)
	holdsRate(t, "at 5/s", times(s.of("")), 5, 1)
	for _, c := range []struct {
		perSecond float64
		starts    int
		idle      time.Duration // since the last start
	}{{1, 3, 0}, {20, 30, 600 * time.Millisecond}, {5, 5, 0}} {
		// Part of the script: at 1/s, time for many starts at 20/s.
		<-time.After(c.idle)
		changed := time.Now()
		r.change(func(to *wire.Changed) { to.Worker.MaxJobsPerSecond = c.perSecond })
		heard := time.Now()
		s.reach(r, "", s.count("")+c.starts)
		at := times(s.of(""))
		at = at[slices.IndexFunc(at, heard.Before):]
		interval := time.Duration(float64(time.Second) / c.perSecond)
		if waited := at[0].Sub(changed); waited < interval*9/10 || waited > interval+500*time.Millisecond {
			t.Errorf("first start at %g/s came %v after the change, want one turn later, %v", c.perSecond, waited, interval)
		}
		holdsRate(t, "after a change", at, c.perSecond, 1)
		if took, most := at[len(at)-1].Sub(at[0]), time.Duration(c.starts)*interval*11/10+500*time.Millisecond; took > most {
			t.Errorf("%d starts at %g/s took %v, want at most %v", len(at), c.perSecond, took, most)
		}
	}
	changed := time.Now()
	r.change(func(to *wire.Changed) { to.Worker.MaxJobsPerSecond = 0 })
	s.reach(r, "", s.count("")+200)
	if took := time.Since(changed); took > 5*time.Second {
		t.Errorf("without a limit 200 starts took %v, want them at once", took)
	}
	r.want(`select concat_ws('/', n, c) from queues`, "1/1") // the same process
}

// RA14, shortened: one in a hundred is told to pause; the queue drains at its rate, and no gap is longer than a pause.
func TestManyShortPausesCostTheirTimeAndNothingElse(t *testing.T) {
	const rate, count, pause = 50, 400, 200 * time.Millisecond
	r := newRig(t)
	r.worker.MaxJobsPerSecond, r.worker.Concurrency = rate, 8
	var s starts
	r.handle("call", func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		<-time.After(rand.N(40 * time.Millisecond)) // it works
		if j.ID%100 == 50 && j.Attempt == 1 {
			return jobs.Throttled(pause, err429)
		}
		return nil
	})
	r.insert("call", count)
	r.start()
	r.done(count)
	at := times(s.of(""))
	holdsRate(t, "starts", at, rate, 1)
	// 3/rate, and a moment for a busy machine.
	if longest := slices.Max(gaps(at)); longest > pause+3*time.Second/rate+150*time.Millisecond {
		t.Errorf("longest gap between starts: got %v, want at most a pause and three turns, %v", longest, pause+3*time.Second/rate)
	}
	ideal := count*time.Second/rate + 4*pause
	if took := at[len(at)-1].Sub(at[0]); took < ideal*9/10 || took > ideal*12/10 {
		t.Errorf("drained in %v, want about %v", took, ideal)
	}
	r.want(`select concat_ws('/', sum(throttled), sum(attempts - excused)) from jobs`, "4/400")
}

// RA15: a slow queue in the same database takes nothing from a fast one.
func TestASlowQueueDoesNotSlowAFastOne(t *testing.T) {
	url := newRig(t).url
	drain := func() time.Duration {
		r := rigOn(t, url)
		r.handle("ok", ok)
		r.exec(`delete from jobs where queue = 'q'`)
		r.insert("ok", 1000)
		began := time.Now()
		r.start()
		r.until(`select count(*) = 1000 from jobs where queue = 'q' and state = 'done'`)
		defer r.stop()
		return time.Since(began)
	}
	alone := min(drain(), drain(), drain())
	slow := rigOn(t, url)
	slow.worker.Queue, slow.worker.MaxJobsPerSecond, slow.worker.Command = "slow", 0.1, []string{"true"}
	slow.exec(`insert into jobs (queue, name) select 'slow', 'x' from generate_series(1, 1000)`)
	slow.start()
	slow.until(`select count(*) = 1 from jobs where queue = 'slow' and state = 'done'`)
	beside := min(drain(), drain(), drain())
	if beside > alone*13/10 { // the best of three is never that far off by itself
		t.Errorf("1000 jobs took %v beside a slow queue, and %v alone; want them as quick", beside, alone)
	}
	if got := slow.log.String(); strings.Count(got, "job ended") > 4 {
		t.Errorf("jobs of the slow queue: got\n%s\nwant one in ten seconds", got)
	}
}
