package migrations_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/testdb"
	"queuekeeper/migrations"
)

// older returns the URL of a database as an earlier version left it, and a child of that version that holds queue q and
// has claimed a job.
func older(t *testing.T, version int32) (url string, child *before, claimed int64) {
	t.Helper()
	url = testdb.Empty(t)
	conn := testdb.Connect(t, url)
	if err := migrations.UpTo(t.Context(), conn, version); err != nil {
		t.Fatalf("UpTo: got %v, want nil", err)
	}
	execute(t, conn, `insert into jobs (queue, name, lane) select 'q', 'Do', 'Lane ' || i % 7 from generate_series(1, 100) i`,
		`insert into queues (queue, starts, paused_until, pause_reason) values ('old', 7, now() + interval '1 h', '429')`)
	child = holdAsBefore(t, url, "q")
	return url, child, mustStep(t, child, 0)
}

func mustStep(t *testing.T, child *before, job int64) int64 {
	t.Helper()
	claimed, err := child.step(t.Context(), "q", job)
	if err != nil || claimed == 0 {
		t.Fatalf("Step of the version before: got job %d (error %v), want one", claimed, err)
	}
	return claimed
}

func text(t *testing.T, conn *pgx.Conn, sql string) (got string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `select (`+sql+`)::text`).Scan(&got); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// A child of the version before goes on with its connection, its statements and its lease.
func TestTablesAreBroughtUpUnderARunningSupervisorOfAVersionBefore(t *testing.T) {
	for _, version := range []int32{1, 2} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			url, child, claimed := older(t, version)
			conn := testdb.Connect(t, url)
			state, err := migrations.Check(t.Context(), conn, "")
			refused(t, err, migrations.ErrOlder, fmt.Sprintf("version %d of %d; run `queuekeeper migrate`", version, state.Wanted))
			if state.Version != int(version) {
				t.Errorf("version: got %d, want %d", state.Version, version)
			}
			const rows = `select string_agg(concat_ws(' ', queue, epoch, holder, starts, expires_at, empty_at, paused_until, pause_reason), ', ' order by queue) from queues`
			const files = `select concat(pg_relation_filenode('queues'), ' ', pg_relation_filenode('jobs'))`
			before, places := text(t, conn, rows), text(t, conn, files)

			up(t, conn, "", migrations.Options{})
			check(t, conn, "")
			if got := text(t, conn, rows); got != before {
				t.Errorf("rows of queues: got %s, want %s", got, before)
			}
			if got := text(t, conn, files); got != places {
				t.Errorf("files of queues and jobs: got %s, want %s: no table is rewritten", got, places)
			}
			// What is new says that nothing is known: no lane is paused, nothing was started.
			const news = `select distinct concat_ws(' ', settled_at, waiting, quotas, lane, lane_left, lanes_paused_until) from queues`
			if got, want := text(t, conn, news), "-infinity 0   0 -infinity"; got != want {
				t.Errorf("new columns of queues: got %q, want %q", got, want)
			}
			if next := mustStep(t, child, claimed); next == claimed {
				t.Errorf("Step afterwards: got job %d again, want the next", next)
			}
			if got := text(t, conn, `select count(*) from jobs where state = 'done'`); got != "1" {
				t.Errorf("done jobs: got %s, want 1", got)
			}
			var released bool
			if err := child.conn.QueryRow(t.Context(), "release", "q", int64(1), 60.0, 0).Scan(&released); err != nil || !released {
				t.Errorf("release: got %v (error %v), want true", released, err)
			}
		})
	}
}

// Whoever waits to change a table has all others wait for it: no lease may run out by that.
func TestMigrationGivesUpOnATableThatStaysLocked(t *testing.T) {
	const reads, writes = `select from queues`, `insert into jobs (queue, name) values ('other', 'Do')`
	for _, c := range []struct {
		version int32
		open    string // what a transaction that stays open has done
	}{{1, reads}, {2, reads}, {2, writes}} {
		t.Run(fmt.Sprintf("version %d beside %.6s", c.version, c.open), func(t *testing.T) {
			url, child, claimed := older(t, c.version)
			conn := testdb.Connect(t, url)
			backup, err := testdb.Connect(t, url).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer backup.Rollback(t.Context())
			if _, err := backup.Exec(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			err = migrations.Up(t.Context(), conn, "", migrations.Options{})
			if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "55P03" || !strings.Contains(err.Error(), "try again") {
				t.Errorf("Up beside a backup: got %v, want lock_not_available and what to do", err)
			}
			_, err = migrations.Check(t.Context(), conn, "")
			refused(t, err, migrations.ErrOlder, "run `queuekeeper migrate`")
			mustStep(t, child, claimed)
			if err := backup.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			up(t, conn, "", migrations.Options{})
		})
	}
}

// A Step has the row of its queue and is on its way to the jobs. A migration that has the jobs by then, and waits for the
// queues, never ends.
func TestMigrationWaitsForAStepThatDoesNotWaitForIt(t *testing.T) {
	url, _, _ := older(t, 2)
	conn, look := testdb.Connect(t, url), testdb.Connect(t, url)
	step, err := testdb.Connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer step.Rollback(t.Context())
	if _, err := step.Exec(t.Context(), `update queues set expires_at = now() + ttl where queue = 'q'`); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- migrations.Up(t.Context(), conn, "", migrations.Options{}) }()
	eventually.OK(t, 10*time.Second, func() error {
		const waits = `select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`
		if got := text(t, look, waits); got != "1" {
			return fmt.Errorf("%s sessions wait, want the migration", got)
		}
		return nil
	})
	if _, err := step.Exec(t.Context(), `update jobs set epoch = epoch where queue = 'q' and state = 'running'`); err != nil {
		t.Errorf("Step: got %v, want nil", err)
	}
	if err := step.Commit(t.Context()); err != nil {
		t.Errorf("commit of the Step: got %v, want nil", err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("Up: got %v, want nil", err)
	}
}
