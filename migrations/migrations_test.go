package migrations_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/testdb"
	"queuekeeper/migrations"
)

const odd = `My "schema.x`

func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func up(t *testing.T, conn *pgx.Conn, schema string, options migrations.Options) {
	t.Helper()
	if err := migrations.Up(t.Context(), conn, schema, options); err != nil {
		t.Fatalf("Up: got %v, want nil", err)
	}
}

func check(t *testing.T, conn *pgx.Conn, schema string) migrations.State {
	t.Helper()
	state, err := migrations.Check(t.Context(), conn, schema)
	if err != nil {
		t.Fatalf("Check: got %v, want nil", err)
	}
	return state
}

// refused checks the sentinel and that the message says what to do.
func refused(t *testing.T, err, want error, advice string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), advice) {
		t.Errorf("got %v, want %v with %q", err, want, advice)
	}
}

func TestEmptyDatabaseIsOlderUntilMigrated(t *testing.T) {
	conn := testdb.Connect(t, testdb.Empty(t))
	_, err := migrations.Check(t.Context(), conn, "")
	refused(t, err, migrations.ErrOlder, "run `queuekeeper migrate`")
	for range 2 { // the second time there is nothing to do
		up(t, conn, "", migrations.Options{})
		state := check(t, conn, "")
		if state.Schema != "public" || state.Version != state.Wanted || state.Major != migrations.Major || !state.Notify {
			t.Errorf("state: got %+v, want schema public at the wanted version with notifications", state)
		}
	}
}

func TestNamedSchemaIsMadeWhateverItsName(t *testing.T) {
	conn := testdb.Connect(t, testdb.Empty(t))
	for _, schema := range []string{odd, "$$ x\ny {{.major}}", strings.Repeat("s", 63)} {
		up(t, conn, schema, migrations.Options{})
		up(t, conn, schema, migrations.Options{})
		check(t, conn, schema)
		jobs := pgx.Identifier{schema, "jobs"}.Sanitize()
		execute(t, conn, `insert into `+jobs+` (queue, name) values ('github', 'SyncIssues')`)
	}
	var tables int
	err := conn.QueryRow(t.Context(), `select count(*) from pg_tables where schemaname = 'public'`).Scan(&tables)
	if err != nil || tables != 0 {
		t.Errorf("tables in public: got %d (error %v), want 0", tables, err)
	}
	if err := migrations.Up(t.Context(), conn, strings.Repeat("s", 64), migrations.Options{}); err == nil {
		t.Error("Up with a name that Postgres would cut off: got nil, want an error")
	}
}

func TestEightAtOnceMigrateOnce(t *testing.T) {
	url := testdb.Empty(t)
	var all sync.WaitGroup
	for range 8 {
		conn := testdb.Connect(t, url)
		all.Go(func() {
			if err := migrations.Up(t.Context(), conn, odd, migrations.Options{}); err != nil {
				t.Errorf("Up: got %v, want nil", err)
			}
		})
	}
	all.Wait()
	conn := testdb.Connect(t, url)
	check(t, conn, odd)
	var locks int
	err := conn.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'advisory'
		and database = (select oid from pg_database where datname = current_database())`).Scan(&locks)
	if err != nil || locks != 0 {
		t.Errorf("advisory locks afterwards: got %d (error %v), want 0", locks, err)
	}
}

func TestForeignTablesAreRefusedUntouched(t *testing.T) {
	for _, foreign := range []string{
		`create table jobs (id int)`,
		`create table queues (id int)`,
		`create table lanes (id int)`,
		`create view jobs as select 1 as id`,
	} {
		conn := testdb.Connect(t, testdb.Empty(t))
		execute(t, conn, foreign)
		_, err := migrations.Check(t.Context(), conn, "")
		refused(t, err, migrations.ErrForeign, "name another schema")
		err = migrations.Up(t.Context(), conn, "", migrations.Options{})
		refused(t, err, migrations.ErrForeign, "name another schema")
		var tables int
		err = conn.QueryRow(t.Context(), `select count(*) from pg_class where relnamespace = 'public'::regnamespace`).Scan(&tables)
		if err != nil || tables != 1 {
			t.Errorf("%s: tables afterwards: got %d (error %v), want 1", foreign, tables, err)
		}
		up(t, conn, "queuekeeper", migrations.Options{}) // as the error advises
	}
}

// A role that may work with the tables but does not own them goes on to do so.
func TestNewTableHasTheGrantsOfTheOld(t *testing.T) {
	conn := testdb.Connect(t, testdb.Empty(t))
	const odd = `Worker "of 100 %`
	execute(t, conn, `create role "Worker ""of 100 %"`)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), `drop owned by "Worker ""of 100 %"; drop role "Worker ""of 100 %"`); err != nil {
			t.Error(err)
		}
	})
	if err := migrations.UpTo(t.Context(), conn, 2); err != nil {
		t.Fatalf("UpTo: got %v, want nil", err)
	}
	execute(t, conn, `grant select, insert, update on queues to "Worker ""of 100 %"`, `grant select on queues to public`)
	up(t, conn, "", migrations.Options{})
	var may, mayNot, all bool
	err := conn.QueryRow(t.Context(), `select has_table_privilege($1::text, 'lanes', 'insert, delete'), has_table_privilege($1::text, 'lanes', 'truncate'),
		(select bool_or(a.grantee = 0) from pg_class c cross join aclexplode(c.relacl) a where c.relname = 'lanes')`, odd).Scan(&may, &mayNot, &all)
	if err != nil || !may || mayNot || !all {
		t.Errorf("may insert and delete, may truncate lanes, and all may read: got %t, %t, %t (error %v), want true, false, true", may, mayNot, all, err)
	}
}

func TestForeignTableInTheWayOfALaterVersionIsRefused(t *testing.T) {
	conn := testdb.Connect(t, testdb.Empty(t))
	if err := migrations.UpTo(t.Context(), conn, 2); err != nil {
		t.Fatalf("UpTo: got %v, want nil", err)
	}
	execute(t, conn, `create table lanes (id int)`)
	refused(t, migrations.Up(t.Context(), conn, "", migrations.Options{}), migrations.ErrForeign, "lanes is not queuekeeper's")
	execute(t, conn, `alter table lanes rename to theirs`) // as the error advises
	up(t, conn, "", migrations.Options{})
}

func TestTablesRestoredInPartAreExplained(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	execute(t, conn, `comment on table jobs is null`)
	if _, err := migrations.Check(t.Context(), conn, ""); err == nil || !strings.Contains(err.Error(), "comment 'queuekeeper 1'") {
		t.Errorf("without the comment: got %v, want the comment to restore", err)
	}
	execute(t, conn, `comment on table jobs is 'queuekeeper 1'`, `drop table queuekeeper_version`)
	_, err := migrations.Check(t.Context(), conn, "")
	refused(t, err, migrations.ErrForeign, "queuekeeper_version is missing")
}

func TestLaterVersionOfTheSameMajorIsAccepted(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	execute(t, conn, `update queuekeeper_version set version = version + 5`)
	up(t, conn, "", migrations.Options{})
	if state := check(t, conn, ""); state.Version != state.Wanted+5 {
		t.Errorf("version: got %d, want it left at %d", state.Version, state.Wanted+5)
	}
}

func TestNewerMajorIsRefused(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	execute(t, conn, `update queuekeeper_version set version = version + 5`, `comment on table jobs is 'queuekeeper 2'`)
	state, err := migrations.Check(t.Context(), conn, "")
	refused(t, err, migrations.ErrNewerMajor, "theirs is 2, ours is 1")
	if state.Major != 2 {
		t.Errorf("major: got %d, want 2", state.Major)
	}
	err = migrations.Up(t.Context(), conn, "", migrations.Options{})
	refused(t, err, migrations.ErrNewerMajor, "theirs is 2, ours is 1")
}

func TestOlderVersionNamesTheCommand(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	execute(t, conn, `drop table jobs, queues, lanes`, `update queuekeeper_version set version = 0`) // as a cut-off first run leaves it
	_, err := migrations.Check(t.Context(), conn, "")
	refused(t, err, migrations.ErrOlder, "run `queuekeeper migrate`")
}

func TestCheckOnlyReads(t *testing.T) {
	for _, url := range []string{testdb.New(t), testdb.Empty(t)} {
		conn := testdb.Connect(t, url)
		execute(t, conn, `set default_transaction_read_only = on`)
		_, err := migrations.Check(t.Context(), conn, "")
		if err != nil && !errors.Is(err, migrations.ErrOlder) {
			t.Errorf("Check in a read-only session: got %v, want nil or ErrOlder", err)
		}
	}
}

func TestSearchPathThatNamesNothingIsExplained(t *testing.T) {
	conn := testdb.Connect(t, testdb.Empty(t))
	execute(t, conn, `set search_path = nowhere`)
	_, err := migrations.Check(t.Context(), conn, "")
	if err == nil || !strings.Contains(err.Error(), "search_path") {
		t.Errorf("Check: got %v, want an error that names search_path", err)
	}
}

func TestCancelledUpLeavesNoLock(t *testing.T) {
	url := testdb.Empty(t)
	holder, waiter := testdb.Connect(t, url), testdb.Connect(t, url)
	execute(t, holder, `select pg_advisory_lock(x'71756575656b6565'::bigint)`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- migrations.Up(ctx, waiter, "", migrations.Options{}) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Up: got %v, want context canceled", err)
	}
	execute(t, holder, `select pg_advisory_unlock(x'71756575656b6565'::bigint)`)
	up(t, testdb.Connect(t, url), "", migrations.Options{})
}
