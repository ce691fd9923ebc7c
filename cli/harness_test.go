package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/testdb"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// siteEnv marks every process of a test, with the test's folder: commands that children start inherit it.
const siteEnv = "QUEUEKEEPER_TEST_SITE"

// site is where a test runs the program: a folder with a queues.toml, and a database.
type site struct {
	t    *testing.T
	dir  string
	url  string
	conn *pgx.Conn // of the test itself
}

// newSite has a database of its own, with the tables.
func newSite(t *testing.T, file string) *site {
	t.Helper()
	return siteAt(t, testdb.New(t), file)
}

func siteAt(t *testing.T, url, file string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), url: url, conn: testdb.Connect(t, url)}
	s.write("queues.toml", file)
	t.Cleanup(s.clean)
	return s
}

// clean ends what a failed test has left.
func (s *site) clean() {
	if !s.t.Failed() {
		return
	}
	for _, pid := range s.processes("") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// script writes a program.
func (s *site) script(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// read is the text of a file that handlers of the test have written; "" if there is none.
func (s *site) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(s.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *site) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.conn.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// insert enqueues as any program would, and returns the job's id.
func (s *site) insert(queue, name string) int64 {
	s.t.Helper()
	return value[int64](s, `insert into jobs (queue, name) values ($1, $2) returning id`, queue, name)
}

func value[T any](s *site, sql string, args ...any) (v T) {
	s.t.Helper()
	if err := s.conn.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func values[T any](s *site, sql string, args ...any) []T {
	s.t.Helper()
	rows, err := s.conn.Query(context.Background(), sql, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// until waits until a query says true.
func (s *site) until(sql string, args ...any) {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		if !value[bool](s, sql, args...) {
			return fmt.Errorf("%s: got false, want true; jobs are\n%s", sql, s.jobs())
		}
		return nil
	})
}

// allDone waits until every job is done.
func (s *site) allDone() { s.t.Helper(); s.until(`select bool_and(state = 'done') from jobs`) }

// jobs tells what is in the table, to see what went wrong.
func (s *site) jobs() string {
	return strings.Join(values[string](s, `
select format('%s %s %s %s %s/%s %s', id, queue, name, state, attempts, excused, left(last_error, 200))
from jobs
where state <> 'done'
order by id
limit 20`), "\n")
}

// processes are the living ones of this site whose command line begins with a text.
func (s *site) processes(begin string) (pids []int) {
	s.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Fatalf("list processes: %v", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + entry.Name() + "/environ") // empty once it is dead
		line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		line = bytes.ReplaceAll(line, []byte{0}, []byte{' '})
		if bytes.Contains(env, []byte(siteEnv+"="+s.dir+"\x00")) && strings.HasPrefix(string(line), begin) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// running waits for the one process whose command line begins with a text.
func (s *site) running(begin string) (pid int) {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		pids := s.processes(begin)
		if len(pids) != 1 {
			return fmt.Errorf("processes %q: got %v, want one", begin, pids)
		}
		pid = pids[0]
		return nil
	})
	return pid
}

// gone fails if there is such a process now.
func (s *site) gone(begin string) {
	s.t.Helper()
	if left := s.processes(begin); len(left) > 0 {
		s.t.Errorf("processes %q: got %v, want none", begin, left)
	}
}

// cleanEnd is the closing assertion of every test, once its supervisors have ended: no process of the site is
// left, no job counts as running, no lease is held, and the jobs are in the states the test says.
func (s *site) cleanEnd(want string) {
	s.t.Helper()
	s.gone("")
	if n := value[int](s, `select count(*) from jobs where state = 'running'`); n != 0 {
		s.t.Errorf("running jobs: got %d, want 0", n)
	}
	if held := values[string](s, `select queue from queues where supervisor is not null`); len(held) > 0 {
		s.t.Errorf("leases held: got %v, want none", held)
	}
	got := strings.Join(values[string](s, `select count(*) || ' ' || state from jobs group by state order by state`), ", ")
	if got != want {
		s.t.Errorf("jobs: got %s, want %s; not done are\n%s", got, want, s.jobs())
	}
}
