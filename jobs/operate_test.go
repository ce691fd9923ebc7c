package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// oneInEachState stores pending 1, running 2, done 3 and dead 4.
func oneInEachState(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `
		insert into jobs (queue, name, state, epoch, locked_at, locked_by, attempts, excused, throttled, finished_at, last_error)
		values ('mail', 'Send', 'pending', null, null, null, 0, 0, 0, null, null),
			('mail', 'Send', 'running', 7, now(), 'web-1/42', 1, 0, 0, null, null),
			('mail', 'Send', 'done', null, null, null, 1, 0, 0, now(), null),
			('mail', 'Send', 'dead', null, null, null, 20, 2, 1, now(), 'no such address')`)
}

// told formats changes for comparison.
func told(changes []jobs.Change) string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%d %s: %v", c.ID, c.Was, c.Err))
	}
	return strings.Join(lines, "\n")
}

func listen(t *testing.T, url, queue string) *pgx.Conn {
	t.Helper()
	conn := testdb.Connect(t, url)
	exec(t, conn, `listen "jobs_`+queue+`"`)
	return conn
}

func wantPayload(t *testing.T, conn *pgx.Conn, want string) {
	t.Helper()
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err != nil {
		t.Fatalf("no notification: %v, want payload %q", err, want)
	}
	if n.Payload != want {
		t.Errorf("payload = %q, want %q", n.Payload, want)
	}
}

func TestRequeueGivesADeadJobANewLife(t *testing.T) {
	url := testdb.New(t)
	conn := testdb.Connect(t, url)
	oneInEachState(t, conn)
	exec(t, conn, `update jobs set run_at = 'infinity'`)
	listener := listen(t, url, "mail")
	changes, err := jobs.Schema("").Requeue(ctx, conn, 4, 1, 99, 3, 2)
	finish(t, err)
	want := `4 dead: <nil>
1 pending: it is pending, and only a dead job is requeued
99 : no such job
3 done: it is done, and only a dead job is requeued
2 running: it is running, and only a dead job is requeued`
	if got := told(changes); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	got := column(t, conn, `select concat_ws(' ', state, attempts, excused, throttled, requeues, run_at <= now(), finished_at, last_error) from jobs where id = 4`)
	if want := "pending 20 20 0 1 t no such address"; got != want {
		t.Errorf("requeued job = %s, want %s", got, want)
	}
	wantPayload(t, listener, "public")
}

func TestRequeueSkipsAJobWhoseKeyIsTaken(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	exec(t, conn, `
		insert into jobs (queue, name, state, unique_key)
		values ('mail', 'Send', 'dead', 'k1'), ('mail', 'Send', 'pending', 'k1'), ('mail', 'Send', 'dead', null),
			('mail', 'Send', 'dead', 'k2'), ('mail', 'Send', 'dead', 'k2'), ('other', 'Send', 'dead', 'k1')`)
	changes, err := jobs.Schema("").RequeueDead(ctx, conn, "mail")
	finish(t, err)
	want := `1 dead: job 2 with the same key is pending
3 dead: <nil>
4 dead: job 5 with the same key is pending
5 dead: <nil>`
	if got := told(changes); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	if !errors.Is(changes[0].Err, jobs.ErrKeyTaken) {
		t.Errorf("error = %v, want ErrKeyTaken", changes[0].Err)
	}
	if got := column(t, conn, `select string_agg(id || state, ' ' order by id) from jobs`); got !=
		"1dead 2pending 3pending 4dead 5pending 6dead" {
		t.Errorf("states = %s", got)
	}
}

// A job of the same key is stored after Requeue has looked and before it changes the row.
func TestRequeueLooksAgainWhenTheKeyIsTakenMeanwhile(t *testing.T) {
	url := testdb.New(t)
	conn, rival, watcher := testdb.Connect(t, url), testdb.Connect(t, url), testdb.Connect(t, url)
	exec(t, conn, `insert into jobs (queue, name, state, unique_key) values ('mail', 'Send', 'dead', 'k')`)
	tx, err := rival.Begin(ctx)
	finish(t, err)
	won := enqueue(t, tx, keyed("k"))
	answer := make(chan string, 1)
	go func() {
		changes, err := jobs.Schema("").Requeue(ctx, conn, 1)
		answer <- told(changes) + fmt.Sprint(" ", err)
	}()
	waitForABlockedSession(t, watcher)
	finish(t, tx.Commit(ctx))
	want := fmt.Sprintf("1 dead: job %d with the same key is pending <nil>", won.ID)
	if got := <-answer; got != want {
		t.Errorf("requeue = %s, want %s", got, want)
	}
}

// The job ends while Requeue waits for its row: the snapshot still shows it running and holding its own key.
func TestRequeueTakesAJobThatHasJustDied(t *testing.T) {
	url := testdb.New(t)
	conn, worker, watcher := testdb.Connect(t, url), testdb.Connect(t, url), testdb.Connect(t, url)
	exec(t, conn, `insert into jobs (queue, name, state, epoch, unique_key) values ('mail', 'Send', 'running', 1, 'k')`)
	tx, err := worker.Begin(ctx)
	finish(t, err)
	_, err = tx.Exec(ctx, `update jobs set state = 'dead', epoch = null`)
	finish(t, err)
	answer := make(chan string, 1)
	go func() {
		changes, err := jobs.Schema("").Requeue(ctx, conn, 1)
		answer <- told(changes) + fmt.Sprint(" ", err)
	}()
	waitForABlockedSession(t, watcher)
	finish(t, tx.Commit(ctx))
	if got, want := <-answer, "1 dead: <nil> <nil>"; got != want {
		t.Errorf("requeue = %s, want %s", got, want)
	}
}

func TestRequeueOfAllDeadGoesInPortions(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	exec(t, conn, `insert into jobs (queue, name, state) select 'mail', 'Send', 'dead' from generate_series(1, 2500)`)
	changes, err := jobs.Schema("").RequeueDead(ctx, conn, "mail")
	finish(t, err)
	if got := column(t, conn, `select count(*) || ' ' || count(distinct xmin::text) from jobs where state = 'pending'`); got != "2500 3" || len(changes) != 2500 {
		t.Errorf("pending rows and transactions = %s, changes = %d, want 2500 3 and 2500", got, len(changes))
	}
}

func TestCancelMakesAJobDeadAndTellsItsWorker(t *testing.T) {
	url := testdb.New(t)
	conn := testdb.Connect(t, url)
	oneInEachState(t, conn)
	listener := listen(t, url, "mail")
	changes, err := jobs.Schema("").Cancel(ctx, conn, 1, 2, 3, 4, 99)
	finish(t, err)
	want := `1 pending: <nil>
2 running: <nil>
3 done: it is done already
4 dead: it is dead already
99 : no such job`
	if got := told(changes); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	got := column(t, conn, `select string_agg(concat_ws(' ', id, state, last_error, epoch, locked_at, locked_by), ', ' order by id)
		from jobs where id < 3 and finished_at is not null`)
	if want := "1 dead cancelled, 2 dead cancelled"; got != want {
		t.Errorf("cancelled jobs = %s, want %s", got, want)
	}
	wantPayload(t, listener, "cancel")
}

// In strict order others of its lane may have waited for it.
func TestACancelOrADeleteOfAPendingJobNotifies(t *testing.T) {
	url := testdb.New(t)
	conn := testdb.Connect(t, url)
	oneInEachState(t, conn)
	listener := listen(t, url, "mail")
	_, err := jobs.Schema("").Delete(ctx, conn, 3, 4)
	finish(t, err)
	exec(t, conn, `notify "jobs_mail", 'next'`)
	wantPayload(t, listener, "next") // for those nobody waits
	_, err = jobs.Schema("").Delete(ctx, conn, 1)
	finish(t, err)
	wantPayload(t, listener, "cancel")
	exec(t, conn, `insert into jobs (id, queue, name) values (101, 'mail', 'Send')`)
	wantPayload(t, listener, "public")
	_, err = jobs.Schema("").Cancel(ctx, conn, 101)
	finish(t, err)
	wantPayload(t, listener, "cancel")
}

func TestDeleteRefusesARunningJob(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	oneInEachState(t, conn)
	changes, err := jobs.Schema("").Delete(ctx, conn, 1, 2, 3, 4, 4)
	finish(t, err)
	want := `1 pending: <nil>
2 running: it is running; cancel it first
3 done: <nil>
4 dead: <nil>
4 dead: <nil>`
	if got := told(changes); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	if got := column(t, conn, `select string_agg(id::text, ' ') from jobs`); got != "2" {
		t.Errorf("left = %s, want 2", got)
	}
}

func TestListFiltersAndPages(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	exec(t, conn, `insert into jobs (queue, name, lane, state)
		select case when i % 2 = 0 then 'even' else 'odd' end, 'N' || i % 3, 'Lane ' || i % 7, case when i % 5 = 0 then 'dead' else 'pending' end
		from generate_series(1, 60) i`)
	for _, c := range []struct {
		filter jobs.Filter
		want   string
	}{
		{jobs.Filter{Limit: 3}, "60 59 58"},
		{jobs.Filter{Limit: 3, Below: 58}, "57 56 55"},
		{jobs.Filter{Queue: "odd", State: jobs.Dead, Limit: 2, Below: 50}, "45 35"},
		{jobs.Filter{Name: "N1", Queue: "even", Limit: 2}, "58 52"},
		{jobs.Filter{Lane: "Lane 6", Limit: 2}, "55 48"},
		{jobs.Filter{Lane: "Lane 6", Queue: "even", State: jobs.Pending, Below: 48}, "34 6"},
		{jobs.Filter{Lane: "lane 6"}, ""},
		{jobs.Filter{Queue: "none"}, ""},
	} {
		list, err := jobs.Schema("").List(ctx, conn, c.filter)
		finish(t, err)
		var got []string
		for _, l := range list {
			got = append(got, fmt.Sprint(l.ID))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("list %+v = %v, want %s", c.filter, got, c.want)
		}
	}
	list, err := jobs.Schema("").List(ctx, conn, jobs.Filter{})
	if err != nil || len(list) != jobs.DefaultListed {
		t.Errorf("list without a limit = %d jobs, %v, want %d", len(list), err, jobs.DefaultListed)
	}
	for _, f := range []jobs.Filter{{State: "asleep"}, {Lane: "a\x00"}} {
		if _, err := jobs.Schema("").List(ctx, conn, f); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("list %+v = %v, want ErrInvalid", f, err)
		}
	}
}

// Whatever a raw INSERT put into the times, lists and details show all jobs.
func TestTimesThatNoClockShowsAreShown(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	exec(t, conn, `set datestyle = 'SQL, DMY'`)
	exec(t, conn, `set timezone = 'UTC'`)
	for _, c := range []struct{ at, want string }{
		{"infinity", "infinity"}, {"-infinity", "-infinity"}, {"0044-03-15 BC", "0044-03-15T00:00:00+00:00 BC"},
		{"294276-12-31", "294276-12-31T00:00:00+00:00"}, {"0001-01-01", "0001-01-01T00:00:00+00:00"},
		{"1969-12-31 23:59:59.5", "1969-12-31T23:59:59.5+00:00"},
	} {
		var id int64
		finish(t, conn.QueryRow(ctx, `insert into jobs (queue, name, state, epoch, run_at, locked_at, finished_at, started_at, created_at, args)
			values ('mail', 'Send', 'running', 1, $1::text::timestamptz, $1::text::timestamptz, $1::text::timestamptz, $1::text::timestamptz, $1::text::timestamptz, null)
			returning id`, c.at).Scan(&id))
		j, err := jobs.Schema("").Show(ctx, conn, id)
		finish(t, err)
		for _, got := range []string{j.RunAt, *j.LockedAt, *j.FinishedAt, *j.StartedAt, j.CreatedAt} {
			if got != c.want {
				t.Errorf("%s shown as %s, want %s", c.at, got, c.want)
			}
		}
		if j.Args != "{}" {
			t.Errorf("null args shown as %s, want {}", j.Args)
		}
	}
	list, err := jobs.Schema("").List(ctx, conn, jobs.Filter{})
	if err != nil || len(list) != 6 {
		t.Errorf("list = %d jobs, %v, want 6", len(list), err)
	}
}

func TestArgsDeeperThanAnyLibraryReadsAreShown(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	exec(t, conn, `set max_stack_depth = '6MB'`)
	exec(t, conn, `insert into jobs (queue, name, args) values ('mail', 'Send', (repeat('[', 6000) || repeat(']', 6000))::jsonb)`)
	j, err := jobs.Schema("").Show(ctx, conn, 1)
	if err != nil || len(j.Args) != 12000 {
		t.Errorf("show = %d bytes of args, %v, want 12000", len(j.Args), err)
	}
	if err := jobs.CheckArgsDepth([]byte(j.Args)); err == nil {
		t.Error("CheckArgsDepth of 6000 levels = nil, want an error")
	}
}

func TestAJobThatIsNotThereIsNotFound(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	if _, err := jobs.Schema("").Show(ctx, conn, 1); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("show = %v, want ErrNotFound", err)
	}
}

func TestPendingJobsAreCountedByQueue(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	oneInEachState(t, conn)
	exec(t, conn, `insert into jobs (queue, name, run_at) values ('a', 'n', 'infinity'), ('a', 'n', now())`)
	got, err := jobs.Schema("").PendingByQueue(ctx, conn)
	if want := map[string]int64{"mail": 1, "a": 2}; err != nil || !maps.Equal(got, want) {
		t.Errorf("pending = %v, %v, want %v", got, err, want)
	}
}
