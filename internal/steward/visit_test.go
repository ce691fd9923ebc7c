package steward_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/internal/steward"
	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
	"queuekeeper/migrations"
)

func TestDatabaseThatIsGoneAndBackIsToldTwice(t *testing.T) {
	t.Parallel()
	cluster := testdb.Own(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := siteAt(t, cluster.URL("postgres"))
	r := s.run(s.file("q"), quick())
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady}))
	s.becomes("ready", `select child_state from queues`)
	for i, state := range []string{jobs.ChildQuiet, jobs.ChildLeaving} {
		if err := cluster.Halt(ctx); err != nil {
			t.Fatal(err)
		}
		s.logs(i+1, "[WARN]  steward waiting for the database: error=")
		r.Show(picture(jobs.Child{Queue: "q", State: state}))
		if err := cluster.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		s.look = testdb.Connect(t, s.url)
		s.becomes(state, `select child_state from queues`)
		s.logs(i+1, "[INFO]  steward has the database again")
	}
	s.exec(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'queuekeeper steward'`)
	s.logs(3, "[INFO]  steward has the database again")
	s.swept()
	s.logs(3, "steward waiting")
}

func TestDatabaseThatCannotBeWorkedOnIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := siteAt(t, testdb.Empty(t))
	r := s.run(s.file("q"), quick())
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady}))
	s.logs(1, "run `queuekeeper migrate`")
	if err := migrations.Up(t.Context(), s.look, "", migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	s.becomes("ready", `select child_state from queues`)
	s.logs(1, "steward has the database again")

	// A session that was made while the database only read never writes again.
	s.exec(`do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`)
	s.exec(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'queuekeeper steward'`)
	s.logs(2, "steward waiting for the database")
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildQuiet}))
	s.exec(`set transaction_read_only = off`)
	s.exec(`do $$ begin execute format('alter database %I reset default_transaction_read_only', current_database()); end $$`)
	s.becomes("quiet", `select child_state from queues`)
	s.logs(2, "steward has the database again")
}

// The process is on its way out: the last picture is worth a second, not more.
func TestEndDoesNotWaitForAServerThatHangs(t *testing.T) {
	t.Parallel()
	cluster := testdb.Own(t)
	s := siteAt(t, cluster.URL("postgres"))
	r := s.start(s.file("q"), wire.Default(), time.Second)
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady}))
	s.becomes("ready", `select child_state from queues`)
	var pid int
	const find = `select pid from pg_stat_activity where application_name = 'queuekeeper steward'`
	if err := s.look.QueryRow(t.Context(), find).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildEnded}))
	begin := time.Now()
	r.stop()
	r.waitEnd(t)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("end of Run: got %v, want a second", took)
	}
}

func TestTryTellsWhetherADatabaseCanBeWorkedOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	st := steward.New(s.file("q"), hclog.NewNullLogger(), wire.Default())
	if err := st.Try(t.Context(), s.file("q")); err != nil {
		t.Errorf("try of a good database = %v, want nil", err)
	}
	s.becomes("0", `select count(*) from pg_stat_activity where datname = current_database() and application_name like '%steward'`)

	if err := st.Try(t.Context(), siteAt(t, testdb.Empty(t)).file("q")); !errors.Is(err, migrations.ErrOlder) {
		t.Errorf("try of a database without tables = %v, want ErrOlder", err)
	}
	elsewhere := s.file("q")
	elsewhere.Schema = "elsewhere"
	if err := st.Try(t.Context(), elsewhere); !errors.Is(err, migrations.ErrOlder) {
		t.Errorf("try of another schema = %v, want ErrOlder", err)
	}
	closed := s.file("q")
	closed.DatabaseURL = "postgres://app:s3cret@127.0.0.1:1/x"
	if err := st.Try(t.Context(), closed); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("try of a database that is down = %v, want an error without the password", err)
	}
	begin := time.Now()
	if err := st.Try(t.Context(), s.silent()); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 8*time.Second {
		t.Errorf("try of a database that says nothing = %v after %v, want the deadline of 5s", err, time.Since(begin))
	}
}
