package cli_test

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
)

const twoQueues = `
[[worker]]
queue = "github"
command = ["true"]
[[worker]]
queue = "slack"
command = ["true"]
`

// waits waits until both children have said why they wait, and fails if a try took more than one line or its line
// says something else.
func (p *process) waits(why string) {
	p.s.t.Helper()
	for _, queue := range []string{"github", "slack"} {
		p.logs(`\[WARN\] .*queue=` + queue + ` .*` + regexp.QuoteMeta(why))
	}
	for line := range strings.Lines(p.log()) {
		if !strings.HasPrefix(line, "20") || strings.Contains(line, "[ERROR]") {
			p.s.t.Errorf("line: got %q, want a line of the log that is no error", line)
		}
		if strings.Contains(line, "[WARN]") && !strings.Contains(line, why) {
			p.s.t.Errorf("warning: got %q, want one that says %q", line, why)
		}
	}
}

// works waits for a job of each queue and ends the supervisor.
func (p *process) works() {
	p.s.t.Helper()
	p.s.insert("github", "Sync")
	p.s.insert("slack", "Post")
	p.s.allDone()
	p.stop()
	p.s.cleanEnd("2 done")
}

func TestRunWaitsForADatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	cluster := testdb.Own(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := cluster.Halt(ctx); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: t.TempDir(), url: cluster.URL("postgres")}
	s.write("queues.toml", twoQueues)
	t.Cleanup(s.clean)
	p := s.run()
	p.waits(`connect: no such file or directory`)
	if err := cluster.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	s.conn = testdb.Connect(t, s.url)
	p.works()
}

// A lease that cannot be given back is told by the exit status. The next start on this host does not wait for it.
func TestTermWithoutADatabaseSaysThatLeasesMayRemain(t *testing.T) {
	t.Parallel()
	cluster := testdb.Own(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := siteAt(t, cluster.URL("postgres"), `shutdown_timeout = "1s"`+twoQueues)
	first := s.run()
	first.ready("github")
	first.ready("slack")
	if err := cluster.Halt(ctx); err != nil {
		t.Fatal(err)
	}
	first.signal(syscall.SIGTERM)
	if took := first.exits(1); took > time.Second+scheduling {
		t.Errorf("from TERM to the end: got %v, want within shutdown_timeout of 1s", took)
	}
	first.logs(`a lease may remain until it runs out: queue=github`)
	s.gone("")
	if err := cluster.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	s.conn = testdb.Connect(t, s.url)
	begin, second := time.Now(), s.run()
	second.ready("github")
	second.ready("slack")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("take-over: got %v, want seconds, not the lease of 30s", took)
	}
	second.works()
}

// A child that dies while the database is down has a successor all the same, which waits like the others.
func TestChildKilledWithoutADatabaseIsBackWithIt(t *testing.T) {
	t.Parallel()
	cluster := testdb.Own(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := siteAt(t, cluster.URL("postgres"), twoQueues)
	p := s.run()
	github, slack := p.ready("github"), p.ready("slack")
	if err := cluster.Halt(ctx); err != nil {
		t.Fatal(err)
	}
	kill(t, github)
	p.logs(`child started: queue=github pid=\d+ n=2`)
	p.logs(`waiting for the database: queue=github`)
	if err := cluster.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	s.conn = testdb.Connect(t, s.url)
	p.ready("github")
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	p.works()
}

func TestRunWaitsForAReadOnlyDatabase(t *testing.T) {
	s := newSite(t, twoQueues)
	s.database(`set default_transaction_read_only = on`)
	p := s.run()
	p.waits(`read-only transaction`)
	s.database(`reset default_transaction_read_only`)
	p.works()
}

// database is an `alter database` of the site's own.
func (s *site) database(change string) {
	s.t.Helper()
	s.exec(`do $$ begin execute format('alter database %I ` + change + `', current_database()); end $$`)
}

func TestRunWaitsForMigrate(t *testing.T) {
	s := siteAt(t, testdb.Empty(t), twoQueues)
	p := s.run()
	p.waits("there are none; run `queuekeeper migrate`")
	s.does(nil, "migrate")
	p.works()
}

func TestRunWaitsForTheProgramOfANewerMajor(t *testing.T) {
	s := newSite(t, twoQueues)
	now := value[string](s, `select obj_description('jobs'::regclass)`)
	s.exec(`comment on table jobs is 'queuekeeper 99'`)
	p := s.run()
	p.waits(`newer major version than this program: theirs is 99`)
	s.exec(`comment on table jobs is '` + now + `'`)
	p.works()
}

func TestFaultyFileIsRefusedBeforeTheDatabaseIsTouched(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := &site{t: t, dir: t.TempDir(), url: "postgres://" + listener.Addr().String() + "/x"}
	t.Cleanup(s.clean)
	s.write("queues.toml", twoQueues+`
[[worker]]
queue = "github"
command = ["true"]
`)
	p := s.run()
	p.exits(78)
	want := "queues.toml:10: worker.github.queue: is \"github\", which has a worker already (line 3), must have exactly one\n"
	if got := p.log(); got != want {
		t.Errorf("output: got %q, want %q", got, want)
	}
	if err := listener.(*net.TCPListener).SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := listener.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("connections to the database: got one (error %v), want none", err)
	}
	s.gone("")
}

func TestQueueWhoseCommandDoesNotExistIsParked(t *testing.T) {
	s := newSite(t, twoQueues+`
[[worker]]
queue = "mail"
command = ["no-such-program"]
`)
	s.insert("mail", "Send")
	s.insert("github", "Sync")
	p := s.run()
	p.logs(`\[ERROR\] .*parked: .*queue=mail .*no-such-program`)
	s.until(`select bool_or(state = 'done') from jobs where queue = 'github'`)
	if got := value[int](s, `select attempts from jobs where queue = 'mail'`); got != 0 {
		t.Errorf("attempts of the parked queue's job: got %d, want 0", got)
	}
	p.stop()
	s.cleanEnd("1 done, 1 pending")
}

func TestWaitingJobsWithoutAWorkerAreToldAtStart(t *testing.T) {
	s := newSite(t, twoQueues)
	s.insert("lost", "Sync")
	s.insert("lost", "Sync")
	p := s.run()
	p.logs(`\[WARN\] +queue has waiting jobs and no worker: queue=lost waiting=2 file=queues.toml`)
	p.ready("github")
	p.ready("slack")
	p.stop()
	s.cleanEnd("2 pending")
}
