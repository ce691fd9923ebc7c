package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// logs waits for a line of the child's log.
func (r *rig) logs(text string) {
	r.t.Helper()
	eventually.OK(r.t, 20*time.Second, func() error {
		if !r.log.has(text) {
			return fmt.Errorf("no %q in the log:\n%s", text, r.log)
		}
		return nil
	})
}

// A Step that carries claims is under way when the API says later: what it brings is not started.
func TestPauseHoldsForWhatIsBeingClaimed(t *testing.T) {
	r := newRig(t)
	r.set.Lease = 30 * time.Second
	r.worker.Concurrency = 10
	refuse := make(chan struct{})
	var starts atomic.Int32
	r.handle("call", func(context.Context, jobs.Job) error {
		<-refuse
		return jobs.Throttled(time.Hour, errors.New("429"))
	})
	r.handle("ok", func(context.Context, jobs.Job) error { starts.Add(1); return nil })
	r.insert("call", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	tx, err := testdb.Connect(t, r.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from queues for update`); err != nil {
		t.Fatal(err)
	}
	r.insert("ok", 9)
	r.until(`select exists (select from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'queuekeeper%')`)
	close(refuse)
	r.logs("queue is paused")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until(`select paused_until > now() from queues`)
	r.until(`select count(*) = 0 from jobs where state = 'running'`)
	if n := starts.Load(); n > 0 {
		t.Errorf("%d jobs started in the pause, want none", n)
	}
}

// An outcome that cannot be written, for now or for good, keeps a suspect waiting, but nothing else.
func TestUnwrittenOutcomeBesideASuspectDoesNotStopTheQueue(t *testing.T) {
	r := newRig(t)
	end := make(chan struct{})
	r.handle("slow", func(context.Context, jobs.Job) error { <-end; return nil })
	r.handle("ok", ok)
	r.worker.Concurrency = 4
	r.insert("slow", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	tx, err := testdb.Connect(t, r.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from jobs where id = 1 for update`); err != nil {
		t.Fatal(err)
	}
	close(end)
	r.exec(`insert into jobs (queue, name, attempts, max_attempts) values ('q', 'ok', 3, 3)`)
	r.insert("ok", 5)
	r.until(`select count(*) = 5 from jobs where state = 'done'`)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.done(7)
}

func TestCancelIsHeardOnABusyQueue(t *testing.T) {
	r := newRig(t)
	r.set.Lease = 30 * time.Second
	r.worker.PollInterval = time.Hour
	r.worker.Concurrency = 4
	ended := make(chan struct{})
	r.handle("long", func(ctx context.Context, _ jobs.Job) error { <-ctx.Done(); close(ended); return nil })
	r.handle("again", func(context.Context, jobs.Job) error { return jobs.RetryAfter(time.Nanosecond, errors.New("again")) })
	r.insert("long", 1)
	r.start()
	r.until(`select state = 'running' from jobs`)
	r.exec(`insert into jobs (queue, name, max_attempts) select 'q', 'again', 1000000 from generate_series(1, 6)`)
	r.until(`select sum(attempts) > 50 from jobs`)
	if _, err := jobs.Schema("").Cancel(t.Context(), r.conn, 1); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the context of the cancelled job does not end")
	}
}

// orphan starts a command as a child of supervisor s2 would, lets the child die, and returns the row that child left
// in queues and the command's pid.
func (r *rig) orphan(env ...string) (command int) {
	r.t.Helper()
	leader := exec.Command("sh", "-c", "sleep 600 & echo $!")
	leader.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	leader.Env = append(os.Environ(), env...)
	out, err := leader.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := leader.Start(); err != nil {
		r.t.Fatal(err)
	}
	if _, err := fmt.Fscan(out, &command); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { syscall.Kill(command, syscall.SIGKILL) })
	if err := leader.Wait(); err != nil {
		r.t.Fatal(err)
	}
	host, _ := os.Hostname()
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, boot_id, pid_namespace, pid, process_start, expires_at)
		values ('q', 7, 's2', 3, 1, $1, $2, $3, $4, 1, now() - interval '1 s')`,
		host, procs.BootID(), procs.PIDNamespace(), leader.Process.Pid)
	return command
}

// Its lease has run out long ago, so nobody had to stand by; its command must go all the same.
func TestCommandOfADeadSupervisorIsKilledBeforeItsJobStartsAgain(t *testing.T) {
	r := newRig(t)
	command := r.orphan(wire.Mark("s2", 3))
	r.handle("ok", func(context.Context, jobs.Job) error {
		if _, alive := procs.StartTime(command); alive {
			return errors.New("the command of the first attempt still runs")
		}
		return nil
	})
	r.exec(`insert into jobs (queue, name, state, attempts, epoch) values ('q', 'ok', 'running', 1, 7)`)
	r.start()
	r.done(1)
	r.want(`select attempts::text from jobs`, "2")
}

// Whoever can write to the table must not be able to have processes killed.
func TestARowAloneGetsNobodyKilled(t *testing.T) {
	r := newRig(t)
	stranger := r.orphan()
	r.handle("ok", ok)
	r.insert("ok", 1)
	r.start()
	r.done(1)
	if _, alive := procs.StartTime(stranger); !alive {
		t.Error("a process without the mark was killed")
	}
}

// A job that the API refuses each time lets the others pass, and in the end it is failing, not the queue.
func TestJobThatIsAlwaysRefusedDoesNotHoldTheOthers(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 2
	r.set.Times.Throttled, r.set.Times.ThrottledMax = time.Millisecond, 2*time.Millisecond
	r.handle("bad", func(context.Context, jobs.Job) error { return jobs.Throttled(0, errors.New("429")) })
	r.handle("ok", ok)
	r.insert("bad", 1)
	r.insert("ok", 5)
	r.start()
	r.until(`select count(*) = 5 from jobs where state = 'done'`)
	r.until(`select throttled >= 30 from jobs where name = 'bad'`)
	for n := 6; value[string](r, `select state from jobs where name = 'bad'`) != "dead"; n++ {
		r.insert("ok", 1)
		r.until(`select count(*) = $1 from jobs where name = 'ok' and state = 'done'`, n)
		if n > 500 {
			t.Fatalf("still not dead\n%s", r.rows())
		}
	}
}

// What else has a killed command's output open holds it up for a moment: it is not stuck.
func TestTimedOutCommandIsNotTakenForAStuckHandler(t *testing.T) {
	r := newRig(t)
	r.set.Times.Stuck = time.Second // as in a real run
	r.worker.Timeout, r.worker.KillAfter = 300*time.Millisecond, 100*time.Millisecond
	r.worker.MaxAttempts = 1
	r.worker.Command = []string{"sh", "-c", `trap "" TERM; setsid sleep 3 & exec sleep 3`}
	r.insert("x", 1)
	r.start()
	r.until(`select state = 'dead' from jobs`)
	r.want(`select last_error from jobs`, "timed out after 300ms: command ended with killed by signal 9")
	r.insert("x", 1)
	r.until(`select count(*) = 2 from jobs where attempts = 1`) // by the same child
}

// Postgres has said that nothing was committed: there is no lease to be released.
func TestChildThatNeverGotALeaseLeavesAtOnce(t *testing.T) {
	r := newRig(t)
	r.handle("ok", ok)
	r.exec(`do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`)
	r.start()
	r.status(wire.Waiting)
	began := time.Now()
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	if took := time.Since(began); took > r.set.ShutdownTimeout/2 {
		t.Errorf("left after %s, want at once", took)
	}
}

// The acquire goes through each time and the first Step ends the connection: that is not a fresh start each time.
func TestConnectionThatBreaksAtEveryStepIsNotHammered(t *testing.T) {
	r := newRig(t)
	r.set.Times.ReconnectMin, r.set.Times.ReconnectMax = time.Second, time.Second
	r.handle("ok", ok)
	r.exec(`create function die() returns trigger language plpgsql as $$
		begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$`)
	r.exec(`create trigger die before update on jobs for each row execute function die()`)
	r.insert("ok", 1)
	r.start()
	began := time.Now()
	r.until(`select coalesce(max(epoch), 0) >= 4 from queues`)
	if took := time.Since(began); took < time.Second {
		t.Errorf("four connections in %s, want a back-off of half a second or more between them", took)
	}
}
