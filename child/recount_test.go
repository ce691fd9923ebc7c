package child

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/config"
	"queuekeeper/internal/testdb"
	"queuekeeper/ratelimit"
)

// lockAfterAcquire has somebody lock the table of jobs from the moment in which the child has acquired the queue, and
// returns what ends that.
func (r *rig) lockAfterAcquire() (unlock func()) {
	r.t.Helper()
	begin := func(sql string) pgx.Tx {
		tx, err := testdb.Connect(r.t, r.url).Begin(r.t.Context())
		if err == nil {
			_, err = tx.Exec(r.t.Context(), sql)
		}
		if err != nil {
			r.t.Error(err)
		}
		return tx
	}
	// The acquire has read jobs when it comes to the lanes.
	gate := begin(`lock table lanes`)
	r.start()
	r.until(`select exists (select from pg_locks where relation = 'lanes'::regclass and not granted)`)
	locked := make(chan pgx.Tx)
	go func() { locked <- begin(`lock table jobs`) }()
	r.until(`select exists (select from pg_locks where relation = 'jobs'::regclass and not granted)`)
	if err := gate.Rollback(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	tx := <-locked
	return func() {
		r.t.Helper()
		if err := tx.Rollback(context.Background()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Neither a statement that is ended nor a connection that breaks while the starts are counted has the queue stand still,
// nor count again with each new connection.
func TestAHistoryThatCannotBeCountedIsNotTriedForEver(t *testing.T) {
	for name, end := range map[string]string{"its statement ends": "pg_cancel_backend", "its connection breaks": "pg_terminate_backend"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.set.Lease = 3 * time.Minute // locks are waited for a tenth of it
			r.worker.Quotas = []config.Quota{{Starts: 50, Window: time.Hour}}
			var s starts
			r.handle("quick", s.quick)
			r.exec(`insert into queues (queue, quotas) values ('q', 'what a later version wrote')`)
			r.insert("quick", 3)
			unlock := r.lockAfterAcquire()
			const counts = ` from pg_stat_activity where datname = current_database() and application_name like 'queuekeeper %'
				and wait_event_type = 'Lock' and query like '%group by floor%'`
			r.until(`select exists (select` + counts + `)`)
			r.exec(`select ` + end + `(pid)` + counts)
			eventuallyLogged(r, "quotas count from now")
			unlock()
			r.done(3)
			if got := strings.Count(r.log.String(), "are counted anew"); got != 1 {
				t.Errorf("counted anew: got %d times, want once\n%s", got, r.log)
			}
			quotas := value[string](r, `select quotas from queues`)
			if _, err := ratelimit.New(limitsOf(r.worker), time.Now(), ratelimit.Saved{Quotas: quotas}); err != nil {
				t.Errorf("what the next holder finds, %q: got %v, want it readable", quotas, err)
			}
			r.stop()
			next := r.next()
			next.insert("quick", 1)
			next.start()
			next.done(4)
			if next.log.has("counted anew") {
				t.Errorf("log of the next holder: got %s, want no word of counting anew", next.log)
			}
		})
	}
}
