package migrations_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
	"queuekeeper/migrations"
)

// older returns the URL of a database as version 1 left it, and a queue that is held there, with a job claimed.
func older(t *testing.T) (url string, q *jobs.Queue, claimed jobs.Claimed) {
	t.Helper()
	url = testdb.Empty(t)
	conn := testdb.Connect(t, url)
	if err := migrations.UpTo(t.Context(), conn, 1); err != nil {
		t.Fatalf("UpTo: got %v, want nil", err)
	}
	execute(t, conn, `insert into jobs (queue, name) select 'q', 'Do' from generate_series(1, 100)`,
		`insert into queues (queue, starts) values ('old', 7)`)
	if err := jobs.PrepareSession(t.Context(), conn, "worker", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	a, err := jobs.Schema("").Acquire(t.Context(), conn, "q", jobs.Bid{
		Holder: jobs.Holder{Supervisor: "s", N: 1, C: 1, Host: "web", PID: 7}, TTL: 30 * time.Second, Limits: jobs.Limits{MaxAttempts: 20},
	})
	if err != nil {
		t.Fatalf("Acquire: got %v, want nil", err)
	}
	return url, a.Queue, step(t, a.Queue, jobs.Step{Claim: 1}).Claimed[0]
}

func step(t *testing.T, q *jobs.Queue, s jobs.Step) jobs.Reply {
	t.Helper()
	reply, err := q.Step(t.Context(), s)
	if err != nil {
		t.Fatalf("Step: got %v, want nil", err)
	}
	return reply
}

func text(t *testing.T, conn *pgx.Conn, sql string) (got string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `select (`+sql+`)::text`).Scan(&got); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// A child of the version before goes on with its connection, its statements and its lease.
func TestTablesAreBroughtUpUnderARunningSupervisorOfTheVersionBefore(t *testing.T) {
	url, q, claimed := older(t)
	conn := testdb.Connect(t, url)
	state, err := migrations.Check(t.Context(), conn, "")
	refused(t, err, migrations.ErrOlder, "version 1 of 2; run `queuekeeper migrate`")
	if state.Version != 1 {
		t.Errorf("version: got %d, want 1", state.Version)
	}
	const rows = `select string_agg(concat_ws(' ', queue, epoch, holder, starts, expires_at, empty_at), ', ' order by queue) from queues`
	const file = `select pg_relation_filenode('queues')`
	before, place := text(t, conn, rows), text(t, conn, file)

	up(t, conn, "", migrations.Options{})
	check(t, conn, "")
	if got := text(t, conn, rows); got != before {
		t.Errorf("rows of queues: got %s, want %s", got, before)
	}
	if got := text(t, conn, file); got != place {
		t.Errorf("file of queues: got %s, want %s: the table is not rewritten", got, place)
	}
	reply := step(t, q, jobs.Step{Ended: []jobs.Ended{{Ref: claimed.Ref(), Kind: jobs.KindDone}}, Claim: 1})
	if len(reply.Recorded) != 1 || len(reply.Claimed) != 1 {
		t.Errorf("Step afterwards: got %+v, want one recorded and one claimed", reply)
	}
	if err := q.Release(t.Context(), nil, 0, 0); err != nil {
		t.Errorf("Release: got %v, want nil", err)
	}
}

// Whoever waits to change a table has all others wait for it: no lease may run out by that.
func TestMigrationGivesUpOnATableThatStaysLocked(t *testing.T) {
	url, q, _ := older(t)
	conn := testdb.Connect(t, url)
	backup, err := testdb.Connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Rollback(t.Context())
	if _, err := backup.Exec(t.Context(), `select from queues`); err != nil {
		t.Fatal(err)
	}
	err = migrations.Up(t.Context(), conn, "", migrations.Options{})
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "55P03" || !strings.Contains(err.Error(), "try again") {
		t.Errorf("Up beside a backup: got %v, want lock_not_available and what to do", err)
	}
	if state, err := migrations.Check(t.Context(), conn, ""); state.Version != 1 {
		t.Errorf("version: got %d (error %v), want 1", state.Version, err)
	}
	step(t, q, jobs.Step{Claim: 1})
	if err := backup.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	up(t, conn, "", migrations.Options{})
}
