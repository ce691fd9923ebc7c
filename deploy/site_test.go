package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/testdb"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// siteEnv marks every process of a test, the manager as well, with the test's folder.
const siteEnv = "QUEUEKEEPER_TEST_SITE"

// buildDir is where the program is built.
var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "queuekeeper-deploy-"); err != nil {
		panic(err)
	}
	status := m.Run()
	if err := os.RemoveAll(buildDir); err != nil {
		panic(err)
	}
	os.Exit(status)
}

// build builds the program as `make build` does, once.
var build = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(buildDir, "queuekeeper")
	cmd := exec.Command("go", "build", "-o", path, "queuekeeper/cmd/queuekeeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// site is a machine with queuekeeper on it: a folder, a program, a queues.toml and a database.
type site struct {
	t       *testing.T
	dir     string
	program string
	url     string
	conn    *pgx.Conn // of the test itself
}

// queues has a queue whose jobs run until there is a file "go", and never two at once: they would meet in a folder.
const queues = `
[[worker]]
queue = "held"
max_attempts = 1
command = ["sh", "-c", "mkdir working && until test -e go; do sleep 0.02; done; rmdir working"]
[[worker]]
queue = "quick"
command = ["true"]
`

// newSite skips the test unless all these programs are there.
func newSite(t *testing.T, programs ...string) *site {
	t.Helper()
	t.Parallel()
	for _, name := range programs {
		needs(t, name)
	}
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	url := testdb.New(t)
	s := &site{t: t, dir: t.TempDir(), program: program, url: url, conn: testdb.Connect(t, url)}
	s.write("queues.toml", queues)
	t.Cleanup(s.clean)
	return s
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed; make deps installs the process managers", program)
	}
}

// clean tells what happened in a failed test, and ends what it has left.
func (s *site) clean() {
	if !s.t.Failed() {
		return
	}
	s.t.Logf("log:\n%.20000s", s.log())
	for range 100 { // a manager may just have started another
		for _, pid := range s.processes("") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// read is the text of a file of the site; "" if there is none.
func (s *site) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(s.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(text)
}

// asUser is how files have the program run as a user that this machine may not have.
var asUser = regexp.MustCompile(`-u queuekeeper |s6-setuidgid queuekeeper |(?m)^user=queuekeeper\n`)

// adapted is the text of a file of this folder, with the paths of the site. Nothing else in it is changed.
func (s *site) adapted(name string, more ...string) string {
	s.t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	paths := append(more, "/usr/local/bin/queuekeeper", s.program, "/etc/queuekeeper/queues.toml", s.path("queues.toml"))
	for i := 0; i < len(more); i += 2 {
		if !bytes.Contains(text, []byte(more[i])) {
			s.t.Fatalf("%s: got no %q, want one to be replaced", name, more[i])
		}
	}
	return strings.NewReplacer(paths...).Replace(asUser.ReplaceAllString(string(text), ""))
}

// install puts files of this folder into a folder of the site.
func (s *site) install(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.write(name, s.adapted(name))
	}
}

// insert enqueues a job as any program would.
func (s *site) insert(queue string) {
	s.t.Helper()
	if _, err := s.conn.Exec(context.Background(), `insert into jobs (queue, name) values ($1, 'Sync')`, queue); err != nil {
		s.t.Fatal(err)
	}
}

// until waits until a query says true.
func (s *site) until(sql string) {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		var yes bool
		if err := s.conn.QueryRow(context.Background(), sql).Scan(&yes); err != nil || !yes {
			return fmt.Errorf("%s: got %v %v, want true; jobs are %s", sql, yes, err, s.jobs())
		}
		return nil
	})
}

// inHand waits until a job of the queue held is under way.
func (s *site) inHand() {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		_, err := os.Stat(s.path("working"))
		return err
	})
}

// jobs tells how many there are in each state.
func (s *site) jobs() (all string) {
	s.t.Helper()
	err := s.conn.QueryRow(context.Background(), `
select coalesce(string_agg(n || ' ' || state, ', ' order by state), 'none')
from (select count(*) as n, state from jobs group by state) j`).Scan(&all)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// drains puts a job in hand and another behind it, stops by the manager's means, and lets the job finish only then.
// stop returns a wait for the end of the stop.
func (s *site) drains(stop func() (wait func())) {
	s.t.Helper()
	s.insert("quick")
	s.until(`select bool_and(state = 'done') from jobs`)
	s.insert("held")
	s.inHand()
	s.insert("held") // not started any more
	wait := stop()
	s.logs(1, `children told to leave: do=drain`)
	s.write("go", "")
	wait()
}

// cleanEnd is the closing assertion of every test, once the manager has ended too: no process of the site is left, no
// lease is held, and the jobs are in the states the test says.
func (s *site) cleanEnd(want string) {
	s.t.Helper()
	if left := s.processes(""); len(left) > 0 {
		s.t.Errorf("processes: got %v, want none", left)
	}
	var held int
	err := s.conn.QueryRow(context.Background(), `select count(*) from queues where supervisor is not null`).Scan(&held)
	if err != nil || held > 0 {
		s.t.Errorf("leases held: got %d %v, want none", held, err)
	}
	if got := s.jobs(); got != want {
		s.t.Errorf("jobs: got %s, want %s", got, want)
	}
}
