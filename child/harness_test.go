package child

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"

	"queuekeeper/config"
	"queuekeeper/handler"
	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

const queue = "q"

// rig is a child's loop that runs in the test's process, and a connection to look at its database.
type rig struct {
	t       testing.TB
	url     string
	conn    *pgx.Conn
	worker  config.Worker
	own     map[string]jobs.Handler
	set     wire.Settings
	log     *logged
	said    chan wire.Status
	signals chan os.Signal
	control chan wire.Control
	exited  chan int
	left    bool // exited was read
}

// newRig prepares a child with fast times: back-offs of 10 ms, a lease of two seconds.
func newRig(t testing.TB) *rig {
	t.Helper()
	url := testdb.New(t)
	return rigOn(t, url)
}

func rigOn(t testing.TB, url string) *rig {
	r := &rig{t: t, url: url, conn: testdb.Connect(t, url), own: map[string]jobs.Handler{}, log: &logged{t: t}}
	r.worker = config.Worker{
		Queue: queue, Burst: 1, Headroom: 0.01, Concurrency: 1, PollInterval: 10 * time.Second, Timeout: time.Minute,
		KillAfter: 5 * time.Second, MaxAttempts: 20,
	}
	r.set = wire.Settings{
		DatabaseURL: url, Lease: 2 * time.Second, ShutdownTimeout: 5 * time.Second, Supervisor: "s1", N: 1,
		Times: wire.Default().Divided(100),
	}
	return r
}

// start runs the child until the test ends or stop is called.
func (r *rig) start() {
	r.t.Helper()
	r.set.Worker = r.worker
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: r.log})
	handlers, err := handler.New(r.worker, jobs.Handlers{queue: r.own}, log)
	if err != nil {
		r.t.Fatal(err)
	}
	r.said, r.signals = make(chan wire.Status, 100), make(chan os.Signal, 2)
	r.control, r.exited = make(chan wire.Control), make(chan int, 1)
	c := newLoop(r.set, handlers, log)
	c.say, c.signals, c.control = func(s wire.Status) { r.said <- s }, r.signals, r.control
	go func() { r.exited <- c.run() }()
	r.t.Cleanup(func() { r.stop() })
}

// stop ends the child, if it has not ended, and waits for it.
func (r *rig) stop() (code int) {
	if r.left {
		return 0
	}
	r.signals <- syscall.SIGQUIT
	return r.wait()
}

func (r *rig) wait() int {
	r.t.Helper()
	select {
	case code := <-r.exited:
		r.left = true
		return code
	case <-time.After(30 * time.Second):
		r.t.Fatal("the child does not end")
		return 0
	}
}

// handle gives the job name a handler.
func (r *rig) handle(name string, do jobs.Handler) { r.own[name] = do }

// insert enqueues n jobs the way any language can.
func (r *rig) insert(name string, n int) {
	r.t.Helper()
	r.exec(`insert into jobs (queue, name) select $1, $2 from generate_series(1, $3)`, queue, name, n)
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.conn.Exec(context.Background(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

// value reads one value.
func value[T any](r *rig, sql string, args ...any) (v T) {
	r.t.Helper()
	if err := r.conn.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// until waits for a query of one bool to be true.
func (r *rig) until(sql string, args ...any) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !value[bool](r, sql, args...) {
		if time.Now().After(deadline) {
			r.t.Fatalf("still not true after 20 s: %s\n%s\nlog:\n%s", sql, r.rows(), r.log)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// done waits until all n jobs of the queue are done.
func (r *rig) done(n int) {
	r.t.Helper()
	r.until(`select count(*) = $1 and bool_and(state = 'done') from jobs`, n)
}

// rows prints the table, for a failure's message.
func (r *rig) rows() string {
	return value[string](r, `select coalesce(string_agg(concat_ws(' ', id, name, state, 'attempts', attempts, 'excused', excused,
		'epoch', epoch, 'error', last_error), E'\n' order by id), 'no jobs') from (select * from jobs order by id limit 20) j`)
}

// logged is what the child logs; printed if the test fails.
type logged struct {
	t    testing.TB
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) has(text string) bool { return strings.Contains(l.String(), text) }

// ready waits until the child holds the queue.
func (r *rig) ready() {
	r.t.Helper()
	r.status(wire.Ready)
}

// status waits until the child says that it is so.
func (r *rig) status(is string) wire.Status {
	r.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case s := <-r.said:
			if s.Is == is {
				return s
			}
		case <-deadline:
			r.t.Fatalf("not %s after 20 s; log:\n%s", is, r.log)
		}
	}
}

// want compares one text from the database.
func (r *rig) want(sql, want string, args ...any) {
	r.t.Helper()
	if got := value[string](r, sql, args...); got != want {
		r.t.Errorf("%s\n got %q\nwant %q\n%s", sql, got, want, r.rows())
	}
}

// assertReleased is how every child must leave the database: no row running, no lease held.
func (r *rig) assertReleased() {
	r.t.Helper()
	if n := value[int](r, `select count(*) from jobs where state = 'running'`); n != 0 {
		r.t.Errorf("%d jobs still running after the child left\n%s", n, r.rows())
	}
	if n := value[int](r, `select count(*) from queues where supervisor is not null`); n != 0 {
		r.t.Error("the lease is still held after the child left")
	}
}
