package child

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// A Step that carries claims is under way when the child is told that it must start nothing: what the Step brings goes
// back, uncounted.
func TestWhatIsBeingClaimedIsNotStartedAfterTheOrder(t *testing.T) {
	for name, order := range map[string]func(r *rig){
		"drain": func(r *rig) {
			r.control <- wire.Control{Do: wire.Drain, Within: 5 * time.Second}
			r.logs("draining")
		},
		"quiet": func(r *rig) {
			r.change(func(to *wire.Changed) { to.Quiet = true })
			r.logs("quiet=true")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.set.Lease = 5 * time.Minute // a tenth of it is how long the Step waits for the lock
			r.set.Times.Sweep = time.Hour // it waits for the same lock
			var starts atomic.Int32
			r.handle("ok", func(context.Context, jobs.Job) error { starts.Add(1); return nil })
			r.start()
			r.ready()
			tx, err := testdb.Connect(t, r.url).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `select from queues for update`); err != nil {
				t.Fatal(err)
			}
			// Due for long: the Step that waits may have begun before this, and its time with it.
			r.exec(`insert into jobs (queue, name, run_at) values ($1, 'ok', now() - interval '1 hour')`, queue)
			r.until(`select exists (select from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'queuekeeper%')`)
			order(r)
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.until(`select attempts = 1 and state <> 'running' from jobs`)
			r.want(`select concat_ws(' ', state, attempts, excused) from jobs`, "pending 1 1")
			if n := starts.Load(); n > 0 {
				t.Errorf("starts after the order: got %d, want none", n)
			}
			if name == "quiet" {
				r.signals <- syscall.SIGTERM
			}
			if code := r.wait(); code != wire.ExitOK {
				t.Errorf("exit status: got %d, want %d", code, wire.ExitOK)
			}
			r.assertReleased()
		})
	}
}
