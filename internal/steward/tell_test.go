package steward_test

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"queuekeeper/config"
	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

func TestPictureIsStoredAndRepeatedSoThatItsAgeTellsWhoLives(t *testing.T) {
	s := newSite(t)
	r := s.run(s.file("q"), quick())
	p := picture(jobs.Child{Queue: "q", State: jobs.ChildParked, Detail: "no command", LastExit: "exit status 3", ExitAgo: time.Hour})
	p.FailedReload = "queues.toml:3"
	r.Show(p)
	s.becomes("me web-1 parked no command 0 exit status 3 queues.toml:3", `select concat_ws(' ', child_supervisor, child_host,
		child_state, child_detail, child_pid, restarts, last_exit, failed_reload) from queues where queue = 'q'`)
	first := s.text(`select seen_at from queues`)
	s.becomes("true", `select seen_at > $1::timestamptz from queues`, first)
	s.is("true", `select now() - last_exit_at between interval '1 h' and interval '1 h 1 min' from queues`)
	s.is("1", `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'queuekeeper steward'`)
}

// A supervisor with two hundred children that come up says so two hundred times.
func TestOfManyPicturesOnlyTheNewestIsStoredAtMostOnceASecond(t *testing.T) {
	s := newSite(t)
	s.exec(`create table seen (restarts int)`)
	s.exec(`create function see() returns trigger language plpgsql as
		$$ begin insert into seen (restarts) values (new.restarts); return new; end $$`)
	s.exec(`create trigger see before update on queues for each row when (new.restarts is not null) execute function see()`)
	times := wire.Default()
	times.Sweep = 30 * time.Second // so that it is once in half a second
	begin := time.Now()
	r := s.run(s.file("q"), times)
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady}))
	s.becomes("1", `select count(*) from seen`)
	for i := range 500 {
		r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady, Restarts: i}))
		s.text(`select 1`) // as long as it would take to store one
	}
	s.becomes("499", `select max(restarts) from seen`)
	got, most := s.text(`select count(*) from seen`), 1+time.Since(begin)/(500*time.Millisecond)
	if n, _ := strconv.Atoi(got); n > int(most) {
		t.Errorf("pictures stored in %v = %d, want at most %d of 501", time.Since(begin), n, most)
	}
}

// What the children were last is what one wants to know of a supervisor that has ended.
func TestTheLastPictureIsStoredAtTheEnd(t *testing.T) {
	s := newSite(t)
	r := s.run(s.file("q"), wire.Default())
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady}))
	s.becomes("ready", `select child_state from queues`)
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildEnded}))
	r.stop()
	r.waitEnd(t)
	s.is("ended", `select child_state from queues`)
	s.becomes("0", `select count(*) from pg_stat_activity where datname = current_database() and application_name like '%steward'`)
}

func TestLockedRowIsToldOfOnceItIsFree(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue) values ('a'), ('b')`)
	operator := testdb.Connect(t, s.url)
	tx, err := operator.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from queues where queue = 'a' for update`); err != nil {
		t.Fatal(err)
	}
	times := wire.Default() // the next picture by itself is a minute away
	times.ReconnectMin, times.ReconnectMax = time.Hour, time.Hour
	s.run(s.file("a", "b"), times).Show(picture(jobs.Child{Queue: "a", State: jobs.ChildReady}, jobs.Child{Queue: "b", State: jobs.ChildReady}))
	s.becomes("ready", `select child_state from queues where queue = 'b'`)
	s.is("null", `select child_state from queues where queue = 'a'`)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.becomes("ready", `select child_state from queues where queue = 'a'`)
}

func TestDueJobsWithoutAWorkerAreWarnedOfOnce(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, run_at) values ('lost', 'Do', now()), ('lost', 'Do', now()), ('later', 'Do', 'infinity'),
		('q', 'Do', now())`)
	s.exec(`insert into jobs (queue, name) select 'flood', 'Do' from generate_series(1, 1500)`)
	r := s.run(s.file("q", "witness"), quick())
	r.Show(picture(jobs.Child{Queue: "witness", State: jobs.ChildParked})) // so that it is swept all the same
	const warning = "queue has waiting jobs and no worker: queue="
	s.logs(1, warning+"lost waiting=2 file=queues.toml")
	s.logs(1, warning+"flood waiting=\"1000+\" file=queues.toml")
	s.swept()
	s.logs(2, warning)

	// It is news again once it was over.
	s.exec(`delete from jobs where queue = 'lost'`)
	s.swept()
	s.exec(`insert into jobs (queue, name) values ('lost', 'Do')`)
	s.logs(1, warning+"lost waiting=1 ")
	s.logs(3, warning)
}

func TestQueueThatLosesItsWorkerIsWarnedOfAtOnce(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name) values ('q', 'Do'), ('lost', 'Do')`)
	r := s.run(s.file("q"), wire.Default()) // it looks again in a minute
	s.logs(1, "queue has waiting jobs and no worker: queue=lost ")
	r.Use(s.file("other"))
	s.logs(1, "queue has waiting jobs and no worker: queue=q ")
	s.logs(2, "queue has waiting jobs")
}

// Neither what it hears nor what it is asked waits for a database that never answers.
func TestNothingWaitsForADatabaseThatDoesNotAnswer(t *testing.T) {
	s := newSite(t)
	silent := s.silent()
	r := s.run(silent, wire.Default())
	for range 10_000 {
		r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady}))
		r.Use(silent)
	}
	begin := time.Now()
	r.stop()
	r.waitEnd(t)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("end of Run while it connects: got %v, want at once", took)
	}
}

// silent names a database that takes connections and says nothing.
func (s *site) silent() config.File {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { listener.Close() })
	f := s.file("q")
	f.DatabaseURL = "postgres://" + listener.Addr().String() + "/x"
	return f
}

func TestFileIsUsedWithItsDatabase(t *testing.T) {
	s, other := newSite(t), newSite(t)
	r := s.run(s.file("q"), wire.Default())
	r.Show(picture(jobs.Child{Queue: "q", State: jobs.ChildReady}))
	s.becomes("ready", `select child_state from queues`)
	r.Use(other.file("q"))
	other.becomes("ready", `select child_state from queues`)
	s.becomes("0", `select count(*) from pg_stat_activity where datname = current_database() and application_name like '%steward'`)
	if log := s.log.String(); strings.Contains(log, "steward") {
		t.Errorf("log of a change of the database:\n%s\nwant nothing said", log)
	}
}
