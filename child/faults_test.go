package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// cut ends every connection of children to the test's database.
func (r *rig) cut() {
	r.t.Helper()
	r.exec(`select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name like 'queuekeeper %'`)
}

// A running job survives its child's connection: the child acquires again and hands it in.
func TestJobsOutliveTheirConnection(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 2
	hold := make(chan struct{})
	r.handle("hold", func(context.Context, jobs.Job) error { <-hold; return nil })
	r.insert("hold", 2)
	r.start()
	r.until(`select count(*) = 2 from jobs where state = 'running'`)
	for n := range 3 {
		r.cut()
		r.until(`select epoch = $1 from queues`, n+2)
	}
	r.until(`select bool_and(epoch = 4) from jobs`)
	close(hold)
	r.done(2)
	r.want(`select string_agg(attempts::text, ' ') from jobs`, "1 1")
}

func TestOutcomeOfAnOutageIsRecordedAfterIt(t *testing.T) {
	cluster := testdb.Own(t)
	r := rigOn(t, cluster.URL("postgres"))
	r.set.Lease = 30 * time.Second
	end := make(chan struct{})
	r.handle("hold", func(context.Context, jobs.Job) error { <-end; return nil })
	r.insert("hold", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	if err := cluster.Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(end)
	eventually.OK(t, 10*time.Second, func() error {
		if !r.log.has("job ended") || !r.log.has("waiting for the database") {
			return errors.New("job not ended or outage not noticed")
		}
		return nil
	})
	if err := cluster.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.conn = testdb.Connect(t, r.url)
	r.done(1)
	r.want(`select concat_ws('/', attempts, excused) from jobs`, "1/0")
}

// An outage longer than the lease ends what runs, but not the process; nothing of it counts.
func TestLeaseThatRunsOutEndsJobsNotTheProcess(t *testing.T) {
	cluster := testdb.Own(t)
	r := rigOn(t, cluster.URL("postgres"))
	r.set.Lease = time.Second
	causes := make(chan error, 10)
	first := true
	r.handle("hold", func(ctx context.Context, _ jobs.Job) error {
		if !first {
			return nil
		}
		first = false
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
	r.insert("hold", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	if err := cluster.Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case cause := <-causes:
		if cause != errNotOurs {
			t.Errorf("cause %v, want %v", cause, errNotOurs)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the context did not end with the lease")
	}
	if err := cluster.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.conn = testdb.Connect(t, r.url)
	r.done(1)
	r.want(`select concat_ws('/', attempts, excused) from jobs`, "2/1")
}

// Another takes the queue while this child believes to hold it: what it runs is ended and not recorded.
func TestLostLeaseIsNoticedAndNothingRecorded(t *testing.T) {
	r := newRig(t)
	ended := make(chan error, 10)
	r.handle("hold", func(ctx context.Context, _ jobs.Job) error { <-ctx.Done(); ended <- context.Cause(ctx); return nil })
	r.insert("hold", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	other := testdb.Connect(t, r.url)
	var a *jobs.Acquired
	eventually.OK(t, 10*time.Second, func() (err error) { // a renewal may come in between
		r.exec(`update queues set expires_at = '-infinity'`)
		a, err = jobs.Schema("").Acquire(t.Context(), other, queue, jobs.Bid{
			Holder: jobs.Holder{Supervisor: "s2", N: 1, C: 1, Host: "elsewhere", PID: 1}, TTL: time.Minute,
			Backoff: func(int) time.Duration { return time.Hour },
		})
		return err
	})
	select {
	case cause := <-ended:
		if cause != errNotOurs {
			t.Errorf("cause %v, want %v", cause, errNotOurs)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the context did not end")
	}
	eventually.OK(t, 5*time.Second, func() error {
		if !r.log.has("standing by") {
			return errors.New("not standing by; log:\n" + r.log.String())
		}
		return nil
	})
	r.want(`select concat_ws(' ', state, attempts, excused) from jobs`, "pending 1 0")
	// It takes over at once when the other leaves.
	released := time.Now()
	if err := a.Release(t.Context(), jobs.Step{}, jobs.LaneRates{}); err != nil {
		t.Fatal(err)
	}
	r.until(`select coalesce(supervisor = 's1', false) from queues`)
	if took := time.Since(released); took > time.Second {
		t.Errorf("took over after %s, want at once", took)
	}
}

func TestStandingByChildLeavesWithoutTouchingTheLease(t *testing.T) {
	r := newRig(t)
	r.handle("ok", ok)
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, pid, expires_at)
		values ('q', 7, 's2', 1, 1, 'elsewhere', 1, now() + interval '1 hour')`)
	r.start()
	s := r.status(wire.StandingBy)
	if s.Detail != "elsewhere/1" {
		t.Errorf("stands by for %q, want %q", s.Detail, "elsewhere/1")
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	r.want(`select concat_ws(' ', epoch, supervisor) from queues`, "7 s2")
}

// The holder's clock, or the database's, went far ahead and came back: the row says it holds for hours, but nobody
// renews it.
func TestSilentHolderIsReplacedAfterItsLease(t *testing.T) {
	r := newRig(t)
	r.handle("ok", ok)
	r.insert("ok", 1)
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, pid, ttl, expires_at)
		values ('q', 7, 's2', 1, 1, 'elsewhere', 1, '300 ms', now() + interval '5 hours')`)
	r.start()
	r.done(1)
}

func TestRunningRowNobodyClaimedIsBroughtBack(t *testing.T) {
	r := newRig(t)
	r.handle("ok", ok)
	r.start()
	r.ready()
	r.exec(`insert into jobs (queue, name, state, epoch) values ('q', 'ok', 'running', 99), ('q', 'ok', 'running', 1)`)
	r.done(2)
}

func TestOneRowPostgresRefusesDoesNotStopTheOthers(t *testing.T) {
	for _, refused := range []string{"running", "done"} {
		t.Run(refused, func(t *testing.T) {
			r := newRig(t)
			r.worker.Concurrency = 20
			r.handle("ok", ok)
			r.insert("ok", 50)
			r.exec(fmt.Sprintf(`create function refuse() returns trigger language plpgsql as $$
				begin
					if new.id = 7 and new.state = '%s' then raise exception 'no' using errcode = '23514'; end if;
					return new;
				end $$`, refused))
			r.exec(`create trigger refuse before update on jobs for each row execute function refuse()`)
			r.start()
			r.until(`select count(*) = 49 from jobs where state = 'done'`)
			if !r.log.has("leaving it alone") {
				t.Errorf("the log does not name the refused job:\n%s", r.log)
			}
			r.exec(`drop trigger refuse on jobs`)
			r.done(50)
			r.want(`select max(attempts)::text from jobs`, "1")
		})
	}
}

func TestOutcomeIsWrittenWhenPostgresGivesInAfterAWhile(t *testing.T) {
	for _, code := range []string{"40001", "40P01", "57P01"} {
		t.Run(code, func(t *testing.T) {
			r := newRig(t)
			starts := 0
			r.handle("ok", func(context.Context, jobs.Job) error { starts++; return nil })
			r.exec(`create sequence tries`)
			r.exec(fmt.Sprintf(`create function refuse() returns trigger language plpgsql as $$
				begin
					if new.state = 'done' and nextval('tries') <= 3 then raise exception 'not now' using errcode = '%s'; end if;
					return new;
				end $$`, code))
			r.exec(`create trigger refuse before update on jobs for each row execute function refuse()`)
			r.insert("ok", 1)
			r.start()
			r.done(1)
			if starts != 1 {
				t.Errorf("%d starts, want 1", starts)
			}
		})
	}
}

// An operator's open transaction on one row keeps nothing else waiting.
func TestLockedRowDoesNotStopTheQueue(t *testing.T) {
	r := newRig(t)
	hold := make(chan struct{})
	r.worker.Concurrency = 2
	r.handle("hold", func(context.Context, jobs.Job) error { <-hold; return nil })
	r.handle("ok", ok)
	r.insert("hold", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	tx, err := testdb.Connect(t, r.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from jobs where id = 1 for update`); err != nil {
		t.Fatal(err)
	}
	close(hold) // its outcome cannot be recorded now
	r.insert("ok", 5)
	r.until(`select count(*) = 5 from jobs where state = 'done'`)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.done(6)
}

// While the table is locked only the renewal goes through, and the lease is kept.
func TestLockedTableDoesNotCostTheLease(t *testing.T) {
	r := newRig(t)
	r.set.Lease = 3 * time.Second
	r.handle("ok", ok)
	r.start()
	r.ready()
	tx, err := testdb.Connect(t, r.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.insert("ok", 1)
	if _, err := tx.Exec(t.Context(), `lock table jobs`); err != nil {
		t.Fatal(err)
	}
	r.until(`select now() - $1::timestamptz > interval '5 s' from queues`, value[time.Time](r, `select now()`))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.done(1)
	r.want(`select epoch::text from queues`, "1")
	r.want(`select concat_ws('/', attempts, excused) from jobs`, "1/0")
}

func TestDrainLetsJobsFinish(t *testing.T) {
	r := newRig(t)
	started, end := make(chan struct{}), make(chan struct{})
	r.handle("hold", func(context.Context, jobs.Job) error { close(started); <-end; return nil })
	r.insert("hold", 2)
	r.start()
	<-started
	r.control <- wire.Control{Do: wire.Drain, Within: 10 * time.Second}
	r.signals <- syscall.SIGTERM // a repeat changes nothing
	r.until(`select expires_at > now() from queues`)
	close(end)
	if code := r.wait(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	r.want(`select string_agg(concat_ws('/', state, attempts), ' ' order by id) from jobs`, "done/1 pending/0")
	r.assertReleased()
}

func TestDrainGivesBackWhatDoesNotFinish(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignores its context %v", ignores), func(t *testing.T) {
			r := newRig(t)
			started, end := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(end) })
			r.handle("hold", func(ctx context.Context, _ jobs.Job) error {
				close(started)
				if ignores {
					<-end
				}
				<-ctx.Done()
				return ctx.Err()
			})
			r.insert("hold", 1)
			r.start()
			<-started
			r.control <- wire.Control{Do: wire.Drain, Within: time.Second}
			if code := r.wait(); code != 0 {
				t.Errorf("exit status %d, want 0", code)
			}
			r.want(`select concat_ws('/', state, attempts, excused) from jobs`, "pending/1/1")
			r.assertReleased()
		})
	}
}

func TestStopEndsJobsAtOnce(t *testing.T) {
	r := newRig(t)
	started := make(chan struct{})
	r.handle("hold", func(ctx context.Context, _ jobs.Job) error { close(started); <-ctx.Done(); return ctx.Err() })
	r.insert("hold", 1)
	r.start()
	<-started
	began := time.Now()
	r.control <- wire.Control{Do: wire.Drain, Within: time.Minute}
	r.control <- wire.Control{Do: wire.Stop, Within: time.Minute}
	if code := r.wait(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopped after %s, want at once", took)
	}
	r.want(`select concat_ws('/', state, attempts, excused) from jobs`, "pending/1/1")
	r.assertReleased()
}

func TestSupervisorsEndDrains(t *testing.T) {
	r := newRig(t)
	r.handle("ok", ok)
	r.start()
	r.ready()
	close(r.control)
	if code := r.wait(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	r.assertReleased()
}

// With the database gone the lease cannot be released; the child says so and leaves in time.
func TestDrainWithoutDatabaseEndsInTime(t *testing.T) {
	cluster := testdb.Own(t)
	r := rigOn(t, cluster.URL("postgres"))
	r.handle("ok", ok)
	r.start()
	r.ready()
	if err := cluster.Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.control <- wire.Control{Do: wire.Drain, Within: time.Second}
	if code := r.wait(); code != wire.ExitFailed {
		t.Errorf("exit status %d, want %d", code, wire.ExitFailed)
	}
}

// Jobs that were in flight together when their process died are not blamed for each other: past its attempts, each
// runs once more, alone.
func TestJobPastItsAttemptsRunsAlone(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency, r.worker.MaxAttempts = 10, 1
	var beside []int
	running := 0
	lock := make(chan struct{}, 1)
	r.handle("count", func(ctx context.Context, j jobs.Job) error {
		lock <- struct{}{}
		running++
		if j.Attempt > 1 {
			beside = append(beside, running)
		}
		<-lock
		<-time.After(time.Millisecond)
		lock <- struct{}{}
		running--
		<-lock
		return nil
	})
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, pid, expires_at)
		values ('q', 7, 's0', 1, 1, 'elsewhere', 1, now() - interval '1 s')`)
	r.exec(`insert into jobs (queue, name, state, epoch, attempts, max_attempts, locked_at)
		select 'q', 'count', 'running', 7, 1, 1, now() from generate_series(1, 3)`)
	r.insert("count", 20)
	r.start()
	r.done(23)
	if fmt.Sprint(beside) != "[1 1 1]" {
		t.Errorf("the three ran beside %v, want each alone: [1 1 1]", beside)
	}
}

// A running row whose update Postgres refuses keeps neither a successor from acquiring nor the lease from being
// released.
func TestRefusedRowHoldsUpNeitherAcquireNorRelease(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 3
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, pid, expires_at)
		values ('q', 7, 's0', 1, 1, 'elsewhere', 1, now() - interval '1 s')`)
	r.exec(`insert into jobs (queue, name, state, epoch, attempts, max_attempts, locked_at)
		select 'q', 'ok', 'running', 7, 1, 5, now() from generate_series(1, 3)`)
	r.exec(`create function refuse() returns trigger language plpgsql as $$
		begin
			if new.id in (2, 4) and old.state = 'running' then raise exception 'no' using errcode = '23514'; end if;
			return new;
		end $$`)
	r.exec(`create trigger refuse before update on jobs for each row execute function refuse()`)
	started, end := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(end) })
	r.handle("ok", ok)
	r.handle("hold", func(context.Context, jobs.Job) error { close(started); <-end; return nil })
	r.insert("hold", 1)
	r.start()
	<-started
	r.until(`select count(*) = 2 from jobs where state = 'done'`)
	r.control <- wire.Control{Do: wire.Stop, Within: 2 * time.Second}
	if code := r.wait(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	r.want(`select string_agg(state, ' ' order by id) from jobs`, "done running done running")
	r.want(`select count(supervisor)::text from queues`, "0")
}

// A holder of this machine that dies without a word is noticed by its process, not by its lease.
func TestDeadHolderOfThisMachineIsReplacedAtOnce(t *testing.T) {
	r := newRig(t)
	r.set.Times.Glance = 50 * time.Millisecond
	r.handle("ok", ok)
	r.insert("ok", 1)
	holder := exec.Command("sleep", "600")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holder.Process.Kill() })
	started, _ := procs.StartTime(holder.Process.Pid)
	host, _ := os.Hostname()
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, boot_id, pid_namespace, pid, process_start, ttl, expires_at)
		values ('q', 7, 's2', 1, 1, $1, $2, $3, $4, $5, '1 hour', now() + interval '1 hour')`,
		host, procs.BootID(), procs.PIDNamespace(), holder.Process.Pid, started)
	r.start()
	r.status(wire.StandingBy)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	holder.Wait()
	r.done(1)
	if !r.log.has("queue taken over") {
		t.Errorf("the log does not say so:\n%s", r.log)
	}
}
