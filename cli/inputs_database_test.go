package cli_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/testdb"
)

// To start a child takes no database, and one that dies again and again is started at ever longer intervals with it or
// without.
func TestChildThatDiesAgainAndAgainInAnOutageIsBackAfterIt(t *testing.T) {
	t.Parallel()
	cluster := testdb.Own(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	s := siteAt(t, cluster.URL("postgres"), `
[[worker]]
queue = "github"
command = ["sh", "-c", "test $JOB_ATTEMPT != 1 || sleep 30"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	p := s.run()
	p.ready("github")
	slack := p.ready("slack")
	s.insert("github", "Sync")
	s.running("sleep 30")
	if err := cluster.Halt(ctx); err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	for range 4 {
		waits = append(waits, p.killed("github"))
	}
	for k := range len(waits) - 1 {
		if waits[k] >= waits[k+1] {
			t.Errorf("delays of the restarts: got %v, want each longer than the one before", waits)
		}
	}
	if err := cluster.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	s.conn = testdb.Connect(t, s.url)
	p.ready("github")
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	if took, most := time.Since(back), 20*time.Second; took > most {
		t.Errorf("from the database's return to all queues ready: got %v, want at most %v", took, most)
	}
	s.insert("slack", "Post")
	s.allDone()
	if got, want := value[string](s, `select attempts || ' ' || excused from jobs where queue = 'github'`), "2 0"; got != want {
		t.Errorf("attempts, excused of the job that was killed: got %s, want %s", got, want)
	}
	p.stop()
	s.cleanEnd("2 done")
}

// killed kills the child of a queue, waits for the next and returns how long that was to wait.
func (p *process) killed(queue string) time.Duration {
	p.s.t.Helper()
	pid := p.s.running("queuekeeper: " + queue)
	kill(p.s.t, pid)
	line := p.logs(fmt.Sprintf(`child died: queue=%s pid=%d n=\d+ .*`, queue, pid))
	said := regexp.MustCompile(` n=(\d+) .* again_in=(\S+)`).FindStringSubmatch(line)
	if said == nil {
		p.s.t.Fatalf("death of %s: got %q, want n and again_in in it", queue, line)
	}
	wait, err := time.ParseDuration(said[2])
	if err != nil {
		p.s.t.Fatal(err)
	}
	eventually.OK(p.s.t, patience, func() error {
		if now := p.s.processes("queuekeeper: " + queue); len(now) != 1 || now[0] == pid {
			return fmt.Errorf("processes of %s: got %v, want one that is not %d", queue, now, pid)
		}
		return nil
	})
	return wait
}

// As where a network drops every packet of one connection. Its job is not even interrupted, though it takes longer than
// the lease, and what the old connection still brings changes nothing.
func TestChildWhoseConnectionHangsGoesOnByAnother(t *testing.T) {
	t.Parallel()
	cluster := testdb.Own(t) // a process of Postgres that is stopped may hold up all others
	s := siteAt(t, cluster.URL("postgres"), `
lease = "3s"
[[worker]]
queue = "github"
command = ["sleep", "4"]
`)
	p := s.run()
	child := p.ready("github")
	s.insert("github", "Sync")
	s.running("sleep 4")
	epoch := value[int](s, `select epoch from queues`)
	backend := s.stopBackend("github")
	s.until(`select epoch > $1 from queues`, epoch)
	s.allDone()
	const lease = `select format('%s %s %s %s', epoch, supervisor, n, c) from queues`
	before := value[string](s, lease)
	send(t, syscall.SIGCONT, backend)
	s.until(`select not exists (select from pg_stat_activity where pid = $1)`, backend)
	if after := value[string](s, lease); after != before {
		t.Errorf("holder: got %s, want still %s", after, before)
	}
	if got := value[int](s, `select attempts from jobs`); got != 1 {
		t.Errorf("attempts: got %d, want 1", got)
	}
	if now := p.ready("github"); now != child {
		t.Errorf("child: got process %d, want still %d", now, child)
	}
	p.stop()
	s.cleanEnd("1 done")
}

// stopBackend stops the process of Postgres that serves the child of a queue, at a moment when it does nothing.
func (s *site) stopBackend(queue string) (pid int) {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		pid = value[int](s, `select pid from pg_stat_activity where application_name = 'queuekeeper ' || $1`, queue)
		send(s.t, syscall.SIGSTOP, pid)
		if value[bool](s, `select state = 'idle' from pg_stat_activity where pid = $1`, pid) {
			return nil
		}
		send(s.t, syscall.SIGCONT, pid)
		return fmt.Errorf("process %d of Postgres: got it at work, want it idle", pid)
	})
	s.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	return pid
}

// A holder that is cut off from Postgres for longer than its lease has done a job and cannot say so. Another has done it
// again by the time the word arrives: there is one outcome, the second.
func TestOutcomeThatArrivesAfterTheLeaseIsFencedOff(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
lease = "4s"
[[worker]]
queue = "github"
command = ["sh", "-c", "test $JOB_NAME$JOB_ATTEMPT != Slow1 || until test -e go; do sleep 0.02; done; touch $JOB_NAME$JOB_ATTEMPT"]
`)
	strait := newStrait(t, s.url)
	first := s.run("DATABASE_URL=" + strait.url)
	s.insert("github", "Quick") // its statements are known to Postgres then: the next outcome is on its way at once
	s.allDone()
	first.ready("github")
	s.insert("github", "Slow")
	s.until(`select state = 'running' from jobs where name = 'Slow'`)
	second := s.run()
	second.logs(`standing by: queue=github`)
	strait.close()
	s.write("go", "")
	eventually.OK(t, patience, func() error {
		_, err := os.Stat(s.path("Slow1"))
		return err
	})
	second.ready("github")
	s.until(`select state = 'done' and attempts = 2 and excused = 0 from jobs where name = 'Slow'`)
	const all = `select format('%s %s %s', j, q.epoch, q.supervisor) from jobs j, queues q where name = 'Slow'`
	before := value[string](s, all)
	strait.open()
	first.logs(`standing by: queue=github`)
	s.until(`select count(*) = 2 from pg_stat_activity where application_name = 'queuekeeper github' and datname = current_database()`)
	if after := value[string](s, all); after != before {
		t.Errorf("job, epoch and holder: got %s, want still %s", after, before)
	}
	first.stop()
	second.stop()
	s.cleanEnd("2 done")
}

// strait is a way to Postgres that can be closed. What is sent meanwhile arrives once it is open again.
type strait struct {
	url              string
	listener         net.Listener
	network, address string // of Postgres
	passing          sync.WaitGroup

	gate   sync.RWMutex // locked: it is closed
	closed bool         // for the test alone
}

func newStrait(t *testing.T, to string) *strait {
	t.Helper()
	config, err := pgx.ParseConfig(to)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	w := &strait{}
	w.network, w.address = pgconn.NetworkAddress(config.Host, config.Port)
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	options := u.Query()
	options.Del("host")
	options.Del("port")
	u.Host, u.RawQuery = w.listener.Addr().String(), options.Encode()
	w.url = u.String()
	w.passing.Go(w.serve)
	t.Cleanup(func() {
		w.open()
		w.listener.Close()
		w.passing.Wait()
	})
	return w
}

func (w *strait) serve() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial(w.network, w.address)
		if err != nil {
			near.Close()
			continue
		}
		w.passing.Go(func() { w.pass(far, near) })
		w.passing.Go(func() { w.pass(near, far) })
	}
}

func (w *strait) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.gate.RLock()
		_, errTo := to.Write(buffer[:n])
		w.gate.RUnlock()
		if errors.Join(err, errTo) != nil {
			return
		}
	}
}

func (w *strait) close() {
	w.gate.Lock()
	w.closed = true
}

func (w *strait) open() {
	if w.closed {
		w.gate.Unlock()
	}
	w.closed = false
}
