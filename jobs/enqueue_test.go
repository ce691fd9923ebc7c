package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

var ctx = context.Background()

// column reads one value as text.
func column(t *testing.T, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	var got *string
	if err := conn.QueryRow(ctx, "select ("+sql+")::text", args...).Scan(&got); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if got == nil {
		return "null"
	}
	return *got
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func enqueue(t *testing.T, db jobs.DB, job jobs.New) jobs.Enqueued {
	t.Helper()
	got, err := jobs.Enqueue(ctx, db, job)
	if err != nil {
		t.Fatalf("enqueue %+v: %v", job, err)
	}
	return got
}

func keyed(key string) jobs.New { return jobs.New{Queue: "mail", Name: "Send", UniqueKey: key} }

// waitForABlockedSession waits until a session of conn's database waits for another's transaction.
func waitForABlockedSession(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	eventually.OK(t, 10*time.Second, func() error {
		waiting := column(t, conn, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`)
		if waiting == "0" {
			return errors.New("no session waits for a lock, want one")
		}
		return nil
	})
}

func TestAPlainInsertIsAFullEnqueue(t *testing.T) {
	url := testdb.New(t)
	conn, listener := testdb.Connect(t, url), testdb.Connect(t, url)
	exec(t, listener, `listen "jobs_github"`)
	exec(t, conn, `INSERT INTO jobs (queue, name, args) VALUES ('github', 'SyncIssues', '{"company_id": 1}')`)
	got := column(t, conn, `select concat_ws(' ', queue, name, args, lane, state, attempts, max_attempts, run_at = created_at) from jobs`)
	if want := `github SyncIssues {"company_id": 1} default pending 0 t`; got != want {
		t.Errorf("row = %s, want %s", got, want)
	}
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	n, err := listener.WaitForNotification(wait)
	if err != nil || n.Payload != "public" {
		t.Errorf("notification = %+v, %v, want payload public", n, err)
	}
}

func TestEnqueueStoresWhatAPlainInsertDoes(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	exec(t, conn, `insert into jobs (queue, name) values ('mail', 'Send')`)
	id := enqueue(t, conn, jobs.New{Queue: "mail", Name: "Send"}).ID
	got := column(t, conn, `select count(distinct to_jsonb(j) - 'id' - 'created_at' - 'run_at') from jobs j`)
	if got != "1" || id != 2 {
		t.Errorf("%s different rows, id %d, want 1 and 2", got, id)
	}
}

func TestEveryFieldIsStored(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	id := enqueue(t, conn, jobs.New{
		Queue: "a.b_c-9", Name: "it's \"é\" 😀", Args: map[string]any{"<a>": "b'\n"}, Lane: "l1",
		RunAt:     time.Date(2030, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 2*3600)),
		UniqueKey: " k", MaxAttempts: 7,
	}).ID
	got, err := jobs.Schema("").Show(ctx, conn, id)
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"queue": {got.Queue, "a.b_c-9"}, "name": {got.Name, "it's \"é\" 😀"}, "args": {got.Args, `{"<a>": "b'\n"}`},
		"lane": {got.Lane, "l1"}, "unique key": {*got.UniqueKey, " k"}, "max attempts": {*got.MaxAttempts, 7},
		"run at": {column(t, conn, `select run_at at time zone 'UTC' from jobs`), "2030-01-02 01:04:05.000006"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s = %v, want %v", what, pair[0], pair[1])
		}
	}
}

func TestArgsReachTheTableUnchanged(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	for _, c := range []struct {
		args any
		want string
	}{
		{nil, `{}`}, {`null`, `null`}, {`[]`, `[]`}, {`[1,2]`, `[1, 2]`}, {`"s"`, `"s"`}, {`5`, `5`}, {`true`, `true`},
		{`{}`, `{}`}, {`{"a":1,"a":2}`, `{"a": 2}`}, // equal keys: the last
		{[]byte(`{"s":"\ud83d\ude00"}`), `{"s": "😀"}`},
		{`{"id":3889108265204450030,"n":9007199254740993,"d":0.1000000000000000055}`,
			`{"d": 0.1000000000000000055, "n": 9007199254740993, "id": 3889108265204450030}`},
		{`{"h":1e400}`, `{"h": 1` + strings.Repeat("0", 400) + `}`},
		{`"\\u0000 \u2028"`, "\"\\\\u0000 \u2028\""},
		{struct{ CompanyID int }{7}, `{"CompanyID": 7}`},
		{(*int)(nil), `null`},
	} {
		id := enqueue(t, conn, jobs.New{Queue: "mail", Name: "Send", Args: c.args}).ID
		if got := column(t, conn, `select args from jobs where id = $1`, id); got != c.want {
			t.Errorf("args %v stored as %s, want %s", c.args, got, c.want)
		}
	}
}

func TestEnqueueRefusesWhatTheTableRefuses(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		job  jobs.New
		want string
	}{
		{jobs.New{Queue: "MyQueue", Name: "n"}, `queue "MyQueue": must be 1 to 58 lower-case letters`},
		{jobs.New{Queue: "", Name: "n"}, `queue "": must be`},
		{jobs.New{Queue: strings.Repeat("q", 59), Name: "n"}, `must be 1 to 58`},
		{jobs.New{Queue: "a\n", Name: "n"}, `queue "a\n": must be`},
		{jobs.New{Queue: "x; DROP TABLE jobs;--", Name: "n"}, `must be 1 to 58`},
		{jobs.New{Queue: "q\xff", Name: "n"}, `queue "q\xff": must be`},
		{jobs.New{Queue: "q"}, `name: must not be empty`},
		{jobs.New{Queue: "q", Name: long}, `has 256 bytes; the limit is 255`},
		{jobs.New{Queue: "q", Name: "n\xff"}, `name "n\xff": not valid UTF-8 at byte 2`},
		{jobs.New{Queue: "q", Name: "n\x00"}, `name "n\x00": contains NUL`},
		{jobs.New{Queue: "q", Name: "n", Lane: long}, `lane "xxx`},
		{jobs.New{Queue: "q", Name: "n", UniqueKey: "\xf4\x8d\x61"}, `unique key "\xf4\x8da": not valid UTF-8 at byte 1`},
		{jobs.New{Queue: "q", Name: "n", UniqueKey: "\x00"}, `unique key "\x00": contains NUL`},
		{jobs.New{Queue: "q", Name: "n", UniqueKey: strings.Repeat("x", 100_000)}, `has 100000 bytes; the limit is 255`},
		{jobs.New{Queue: "q", Name: "n", MaxAttempts: -1}, `max attempts -1: must be 1 to 1000000`},
		{jobs.New{Queue: "q", Name: "n", MaxAttempts: 1_000_001}, `max attempts 1000001: must be`},
		{jobs.New{Queue: "q", Name: "n", In: -5 * time.Second}, `in -5s: must not be negative`},
		{jobs.New{Queue: "q", Name: "n", In: 1, RunAt: time.Now()}, `run at and in: give one of them`},
		{jobs.New{Queue: "q", Name: "n", RunAt: time.Date(-43, 3, 15, 0, 0, 0, 0, time.UTC)}, `must be in the years 1 to 294275`},
		{jobs.New{Queue: "q", Name: "n", Args: `{"a":"x\u0000y"}`}, `args: NUL (\u0000) at .a`},
		{jobs.New{Queue: "q", Name: "n", Args: "hello"}, `args: not JSON at byte 1`},
		{jobs.New{Queue: "q", Name: "n", Args: make(chan int)}, `args: json: unsupported type: chan int`},
	} {
		_, err := jobs.Enqueue(ctx, conn, c.job)
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("enqueue %.80v = %v, want ErrInvalid with %q", c.job, err, c.want)
		}
	}
	if got := column(t, conn, `select count(*) from jobs`); got != "0" {
		t.Errorf("%s jobs stored, want 0", got)
	}
}

// The rules are in Go and in the table: what Go lets through, the table must take.
func TestTheLimitsAreThoseOfTheTable(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	long := strings.Repeat("é", 127) + "x" // 255 bytes
	job := jobs.New{Queue: strings.Repeat("q", 58), Name: long, Lane: long, UniqueKey: long, MaxAttempts: 1_000_000}
	for _, at := range []time.Time{time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(294275, 12, 31, 0, 0, 0, 0, time.UTC)} {
		job.RunAt = at
		enqueue(t, conn, job)
		job.UniqueKey = ""
	}
	for _, in := range []time.Duration{time.Nanosecond, 1e9 * time.Second, 1<<63 - 1} {
		enqueue(t, conn, jobs.New{Queue: "0", Name: "n", In: in})
	}
}

func TestInCountsFromTheDatabasesClock(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	exec(t, conn, `set timezone = 'Asia/Kolkata'`)
	enqueue(t, conn, jobs.New{Queue: "mail", Name: "Send", In: 90 * time.Minute})
	if got := column(t, conn, `select run_at - created_at from jobs`); got != "01:30:00" {
		t.Errorf("run_at - created_at = %s, want 01:30:00", got)
	}
}

func TestManyAreStoredInOrderAndAtOnce(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	list := make([]jobs.New, 2000)
	for i := range list {
		list[i] = jobs.New{Queue: "mail", Name: "Send", Args: i}
	}
	list[7].UniqueKey, list[9].UniqueKey = "k", "k"
	got, err := jobs.EnqueueMany(ctx, conn, list)
	if err != nil {
		t.Fatal(err)
	}
	if got[9].ID != got[7].ID || got[7].Existing || !got[9].Existing {
		t.Errorf("two of a call with one key = %+v and %+v, want the first stored, the second told its id", got[7], got[9])
	}
	for i, e := range got {
		if i == 9 {
			continue
		}
		if args := column(t, conn, `select args from jobs where id = $1`, e.ID); args != fmt.Sprint(i) {
			t.Fatalf("job %d, id %d, has args %s", i, e.ID, args)
		}
	}
	if got := column(t, conn, `select count(*) || ' ' || count(distinct xmin::text) from jobs`); got != "1999 1" {
		t.Errorf("rows and transactions = %s, want 1999 1", got)
	}
	if got, err := jobs.EnqueueMany(ctx, conn, nil); len(got) != 0 || err != nil {
		t.Errorf("enqueue of none = %v, %v, want nothing", got, err)
	}
}

func TestOneBadJobAmongManyRefusesAllAndIsNamed(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	list := make([]jobs.New, 100)
	for i := range list {
		list[i] = jobs.New{Queue: "mail", Name: "Send"}
	}
	list[42].Args = `{"a":"x\u0000y"}`
	_, err := jobs.EnqueueMany(ctx, conn, list)
	want := `enqueue: jobs[42]: args: NUL (\u0000) at .a: Postgres cannot store it`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	if got := column(t, conn, `select count(*) from jobs`); got != "0" {
		t.Errorf("%s jobs stored, want 0", got)
	}
}

func TestASchemaOfAnyNameIsUsed(t *testing.T) {
	url := testdb.New(t)
	conn := testdb.Connect(t, url)
	exec(t, conn, `alter schema public rename to "o'Brien ""x"""`)
	exec(t, conn, `set search_path = ''`)
	if _, err := jobs.Schema(`o'Brien "x"`).Enqueue(ctx, conn, jobs.New{Queue: "mail", Name: "Send"}); err != nil {
		t.Error(err)
	}
}
