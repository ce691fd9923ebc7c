package child

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"queuekeeper/config"
	"queuekeeper/internal/eventually"
	"queuekeeper/jobs"
)

func ok(context.Context, jobs.Job) error { return nil }

func TestJobsAreDoneInOrder(t *testing.T) {
	r := newRig(t)
	var order []int64
	r.handle("note", func(_ context.Context, j jobs.Job) error { order = append(order, j.ID); return nil })
	r.insert("note", 20)
	r.start()
	r.done(20)
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	for i, id := range order {
		if id != int64(i+1) {
			t.Fatalf("order %v, want 1 to 20", order)
		}
	}
	r.assertReleased()
}

func TestFailedJobIsTriedAgainUntilDead(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 3
	r.handle("fail", func(context.Context, jobs.Job) error { return errors.New("no luck") })
	r.insert("fail", 1)
	r.start()
	r.until(`select state = 'dead' from jobs`)
	r.want(`select concat_ws(' ', attempts, excused, last_error) from jobs`, "3 0 no luck")
}

func TestRowsOwnMaxAttemptsWins(t *testing.T) {
	r := newRig(t)
	r.handle("fail", func(context.Context, jobs.Job) error { return errors.New("no luck") })
	r.worker.Job = map[string]config.Job{"byname": {MaxAttempts: 2}}
	r.handle("byname", r.own["fail"])
	r.exec(`insert into jobs (queue, name, max_attempts) values ('q', 'fail', 1), ('q', 'byname', null), ('q', 'byname', 3)`)
	r.start()
	r.until(`select bool_and(state = 'dead') from jobs`)
	r.want(`select string_agg(attempts::text, ' ' order by id) from jobs`, "1 2 3")
}

func TestPermanentFailureIsDeadAtOnce(t *testing.T) {
	r := newRig(t)
	r.handle("fail", func(context.Context, jobs.Job) error { return jobs.Permanent(errors.New("no such channel")) })
	r.insert("fail", 1)
	r.start()
	r.until(`select state = 'dead' from jobs`)
	r.want(`select concat_ws(' ', attempts, last_error) from jobs`, "1 no such channel")
}

func TestRetryAfterOverridesTheBackOff(t *testing.T) {
	r := newRig(t)
	r.handle("later", func(context.Context, jobs.Job) error { return jobs.RetryAfter(time.Hour, errors.New("busy")) })
	r.insert("later", 1)
	r.start()
	r.until(`select attempts = 1 and state = 'pending' from jobs`)
	r.want(`select (run_at - finished_at)::text from jobs`, "01:00:00")
}

func TestPanicAndGoexitFailOnlyTheirJob(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 1
	r.handle("panic", func(context.Context, jobs.Job) error { panic("boom") })
	r.handle("goexit", func(context.Context, jobs.Job) error { runtime.Goexit(); return nil })
	r.handle("ok", ok)
	r.insert("panic", 1)
	r.insert("goexit", 1)
	r.insert("ok", 1)
	r.start()
	r.until(`select string_agg(state, ' ' order by id) = 'dead dead done' from jobs`)
	if text := value[string](r, `select last_error from jobs where name = 'panic'`); !strings.HasPrefix(text, "panic: boom") {
		t.Errorf("last_error %q, want the panic", text)
	}
}

func TestUnknownNameFailsNamingTheKnown(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 2
	r.worker.MaxJobsPerSecond = 0.5
	r.handle("known", ok)
	r.insert("new", 1)
	r.insert("known", 1)
	r.start()
	r.until(`select bool_and(state in ('dead', 'done')) from jobs`)
	r.want(`select last_error from jobs where name = 'new'`, `unknown job name "new": queue q knows known`)
	// It spent no turn: at one in two seconds the known job would not be done before the third.
	if waited := value[float64](r, `select extract(epoch from started_at - created_at)::float8 from jobs where name = 'known'`); waited > 1.9 {
		t.Errorf("the known job waited %.1f s for turns of the unknown one", waited)
	}
}

func TestIdleQueueIsWokenByAnInsert(t *testing.T) {
	r := newRig(t)
	r.worker.PollInterval = time.Hour
	r.handle("ok", ok)
	r.start()
	r.ready()
	for n := range 3 {
		r.insert("ok", 1)
		r.done(n + 1)
	}
}

func TestFutureJobStartsWhenItIsDue(t *testing.T) {
	r := newRig(t)
	r.worker.PollInterval = time.Hour
	r.handle("ok", ok)
	r.start()
	r.ready()
	r.exec(`insert into jobs (queue, name, run_at) values ('q', 'ok', now() + interval '700 ms'), ('q', 'ok', 'infinity')`)
	r.until(`select state = 'done' from jobs order by id limit 1`)
	if late := value[float64](r, `select extract(epoch from started_at - run_at)::float8 from jobs where state = 'done'`); late < 0 || late > 0.3 {
		t.Errorf("started %.3f s after it was due, want 0 to 0.3", late)
	}
}

func TestAtMostConcurrencyJobsRunAtOnce(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 4
	var now, most atomic.Int32
	all := make(chan struct{})
	r.handle("hold", func(context.Context, jobs.Job) error {
		defer now.Add(-1)
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		if most.Load() == 4 {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		<-all
		return nil
	})
	r.insert("hold", 40)
	r.start()
	r.done(40)
	if most.Load() != 4 {
		t.Errorf("%d jobs at once, want 4", most.Load())
	}
}

func TestTimedOutJobIsFailed(t *testing.T) {
	r := newRig(t)
	r.worker.Timeout = 50 * time.Millisecond
	r.worker.MaxAttempts = 1
	r.handle("slow", func(ctx context.Context, _ jobs.Job) error { <-ctx.Done(); return ctx.Err() })
	r.insert("slow", 1)
	r.start()
	r.until(`select state = 'dead' from jobs`)
	r.want(`select last_error from jobs`, "timed out after 50ms: context deadline exceeded")
}

// A goroutine cannot be killed: the outcome is recorded and the process leaves for a new one.
func TestHandlerThatIgnoresItsContextEndsTheProcess(t *testing.T) {
	r := newRig(t)
	r.worker.Timeout, r.worker.KillAfter = 50*time.Millisecond, 100*time.Millisecond
	r.worker.MaxAttempts = 1
	r.worker.Concurrency = 2
	never, beside := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(never) })
	r.handle("stuck", func(context.Context, jobs.Job) error { <-never; return nil })
	r.handle("beside", func(ctx context.Context, _ jobs.Job) error { <-beside; return nil })
	r.worker.Job = map[string]config.Job{"beside": {Timeout: time.Minute}}
	r.insert("beside", 1)
	r.insert("stuck", 1)
	r.insert("stuck", 1)
	r.start()
	r.until(`select state = 'dead' from jobs where id = 2`)
	close(beside) // the others may end
	if code := r.wait(); code != 75 {
		t.Errorf("exit status %d, want 75", code)
	}
	r.want(`select string_agg(state, ' ' order by id) from jobs`, "done dead pending")
	r.assertReleased()
}

func TestCancelledJobsContextEndsAndItStaysDead(t *testing.T) {
	r := newRig(t)
	ended := make(chan error, 1)
	r.handle("long", func(ctx context.Context, _ jobs.Job) error { <-ctx.Done(); ended <- context.Cause(ctx); return nil })
	r.insert("long", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	if _, err := jobs.Schema("").Cancel(t.Context(), r.conn, 1); err != nil {
		t.Fatal(err)
	}
	select {
	case cause := <-ended:
		if cause != errGone {
			t.Errorf("cause %v, want %v", cause, errGone)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the context of the cancelled job does not end")
	}
	r.insert("other", 1)
	r.until(`select attempts = 1 from jobs where name = 'other'`)
	r.want(`select concat_ws(' ', state, last_error) from jobs where name = 'long'`, "dead cancelled")
}

func TestThrottledJobPausesTheQueueAndIsExcused(t *testing.T) {
	r := newRig(t)
	var calls atomic.Int32
	r.handle("call", func(context.Context, jobs.Job) error {
		if calls.Add(1) == 2 {
			return jobs.Throttled(400*time.Millisecond, errors.New("429"))
		}
		return nil
	})
	r.insert("call", 5)
	r.start()
	r.done(5)
	r.want(`select string_agg(concat_ws('/', attempts, excused, throttled), ' ' order by id) from jobs`, "1/0/0 2/1/1 1/0/0 1/0/0 1/0/0")
	if gap := value[float64](r, `select extract(epoch from b.started_at - a.started_at)::float8 from jobs a, jobs b where a.id = 1 and b.id = 2`); gap < 0.4 {
		t.Errorf("the next start came %.3f s after the one before the pause, want at least 0.4", gap)
	}
	r.want(`select pause_reason from queues`, "429")
}

func TestArgsTooDeepToDecodeKillOnlyTheirJob(t *testing.T) {
	r := newRig(t)
	r.handle("ok", ok)
	r.exec(`insert into jobs (queue, name, args) values ('q', 'ok', (repeat('[', 5000) || repeat(']', 5000))::jsonb), ('q', 'ok', '[1]')`)
	r.start()
	r.until(`select string_agg(state, ' ' order by id) = 'dead done' from jobs`)
}

func TestLogHasOneLinePerJob(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 1
	r.handle("odd\nname", func(context.Context, jobs.Job) error { return errors.New("two\nlines \x1b[31m") })
	r.exec(`insert into jobs (queue, name) values ('q', E'odd\nname')`)
	r.start()
	r.until(`select state = 'dead' from jobs`)
	eventually.OK(t, 5*time.Second, func() error {
		for line := range strings.Lines(r.log.String()) {
			if strings.Contains(line, `job ended: job="odd\nname" id=1 attempt=1 status=dead duration=`) &&
				strings.Contains(line, `error="two\nlines \\x1b[31m"`) {
				return nil
			}
		}
		return errors.New("no such line in the log:\n" + r.log.String())
	})
}

// Deleted by hand, without a notification: noticed at the poll floor.
func TestDeletedJobsContextEnds(t *testing.T) {
	r := newRig(t)
	r.worker.PollInterval = 200 * time.Millisecond
	ended := make(chan error, 1)
	r.handle("long", func(ctx context.Context, _ jobs.Job) error { <-ctx.Done(); ended <- context.Cause(ctx); return nil })
	r.insert("long", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	r.exec(`delete from jobs`)
	select {
	case cause := <-ended:
		if cause != errGone {
			t.Errorf("cause %v, want %v", cause, errGone)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the context of the deleted job does not end")
	}
}

// The second becomes due a little after the first, often while a Step is on its way: it does not wait for the poll
// floor.
func TestJobThatBecomesDueBesideAnotherStartsInTime(t *testing.T) {
	r := newRig(t)
	r.worker.PollInterval = time.Hour
	r.set.Lease = time.Hour
	r.handle("ok", ok)
	r.start()
	r.ready()
	for n := range 50 {
		r.exec(`insert into jobs (queue, name, run_at) values ('q', 'ok', now() + interval '15 ms'),
			('q', 'ok', now() + interval '15 ms' + $1 * interval '150 us')`, n)
		r.done(2 * (n + 1))
	}
}
