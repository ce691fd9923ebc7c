package steward_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"

	"queuekeeper/config"
	"queuekeeper/internal/eventually"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/steward"
	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// within is how long a test waits for what must happen.
const within = 30 * time.Second

// quick are the fixed times with six sweeps a second, and pictures at most every 3 ms.
func quick() wire.Times { return wire.Default().Divided(360) }

// site is a database, and what its stewards have logged.
type site struct {
	*testing.T
	url  string
	look *pgx.Conn // of the test itself
	log  *lines
}

func newSite(t *testing.T) *site { return siteAt(t, testdb.New(t)) }

func siteAt(t *testing.T, url string) *site {
	return &site{t, url, testdb.Connect(t, url), &lines{}}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// file names the site's database, with a worker for each queue.
func (s *site) file(queues ...string) config.File {
	f := config.File{Path: "queues.toml", DatabaseURL: s.url, Lease: 30 * time.Second}
	for _, q := range queues {
		f.Workers = append(f.Workers, config.Worker{Queue: q})
	}
	return f
}

// running is a steward at work.
type running struct {
	*steward.Steward
	stop  context.CancelFunc
	ended chan struct{}
}

// run starts a steward that has time for its last picture. It is stopped when the test ends.
func (s *site) run(file config.File, times wire.Times) running {
	s.Helper()
	return s.start(file, times, within)
}

func (s *site) start(file config.File, times wire.Times, farewell time.Duration) running {
	s.Helper()
	ctx, stop := context.WithCancel(context.Background())
	log := hclog.New(&hclog.LoggerOptions{Output: s.log})
	r := running{steward.New(file, log, times), stop, make(chan struct{})}
	r.TakeTime(farewell)
	go func() {
		defer close(r.ended)
		r.Run(ctx)
	}()
	s.Cleanup(func() {
		r.stop()
		r.waitEnd(s.T)
		if s.Failed() {
			s.Logf("log:\n%s", s.log)
		}
	})
	return r
}

func (r running) waitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(within):
		t.Fatal("Run after the end of its context: still running, want it to return")
	}
}

// exec is an operator at work.
func (s *site) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.look.Exec(context.Background(), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// text is a value of the database.
func (s *site) text(sql string, args ...any) string {
	s.Helper()
	var got *string
	if err := s.look.QueryRow(context.Background(), `select (`+sql+`)::text`, args...).Scan(&got); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	if got == nil {
		return "null"
	}
	return *got
}

// is compares a value of the database now.
func (s *site) is(want, sql string, args ...any) {
	s.Helper()
	if got := s.text(sql, args...); got != want {
		s.Errorf("%s %v = %s, want %s", sql, args, got, want)
	}
}

// becomes waits until a value of the database is as wanted.
func (s *site) becomes(want, sql string, args ...any) {
	s.Helper()
	eventually.OK(s, within, func() error {
		if got := s.text(sql, args...); got != want {
			return fmt.Errorf("%s %v = %s, want %s", sql, args, got, want)
		}
		return nil
	})
}

// logs waits until the log has count lines with a text.
func (s *site) logs(count int, text string) {
	s.Helper()
	eventually.OK(s, within, func() error {
		if got := strings.Count(s.log.String(), text); got != count {
			return fmt.Errorf("lines of the log with %q = %d, want %d", text, got, count)
		}
		return nil
	})
}

// running inserts a job that somebody is said to be working on.
func (s *site) runningJob(queue string) {
	s.Helper()
	s.exec(`insert into jobs (queue, name, state, attempts, max_attempts, epoch) values ($1, 'Do', 'running', 1, 20, 1)`, queue)
}

// state is that of the only job of a queue.
const state = `select state from jobs where queue = $1`

// held has a queue held by the process pid of this machine.
func (s *site) held(queue string, pid int, started int64, leaseEnds string) {
	s.Helper()
	host, _ := os.Hostname()
	s.exec(`insert into queues (queue, epoch, supervisor, n, c, host, boot_id, pid_namespace, pid, process_start, expires_at)
		values ($1, 1, 'other', 1, 1, $2, $3, $4, $5, $6, now() + $7::interval)`,
		queue, host, procs.BootID(), procs.PIDNamespace(), pid, started, leaseEnds)
}

// swept waits until a steward has swept a second time since now: a job of a queue nobody has is pending again.
func (s *site) swept() {
	s.Helper()
	for range 2 {
		s.exec(`delete from jobs where queue = 'witness'`)
		s.runningJob("witness")
		s.becomes("pending", state, "witness")
	}
}

func picture(children ...jobs.Child) jobs.Picture {
	return jobs.Picture{Supervisor: "me", Host: "web-1", Children: children}
}
