package cli_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
)

// Whatever the program was doing by then: reading its file, starting children, working through a backlog. Before it
// catches signals the signal ends it, and nothing was started.
func TestTermAtAnyMomentStartsNothingMore(t *testing.T) {
	t.Parallel()
	const rounds, grace = 10, 5 * time.Second
	s := newSite(t, `
shutdown_timeout = "5s"
[[worker]]
queue = "alpha"
[[worker]]
queue = "beta"
[[worker]]
queue = "go"
`)
	s.exec(`
insert into jobs (queue, name)
select q, case q when 'go' then 'Breath' else 'Quick' end
from unnest(array['alpha', 'beta', 'go']) q, generate_series(1, 600)`)
	for round := range rounds {
		done := value[int](s, `select count(*) from jobs where state = 'done'`)
		p := s.run()
		if round > rounds/2 {
			s.until(`select count(*) > $1 from jobs where state = 'done'`, done)
		}
		eventually.OK(t, patience, func() error { // every round one line further: at first not even the signals are caught
			if got := strings.Count(p.log(), "\n"); got < round {
				return fmt.Errorf("lines of the log: got %d, want %d", got, round)
			}
			return nil
		})
		told := time.Now()
		p.signal(syscall.SIGTERM)
		if took := p.exits(0, -1); took > grace {
			t.Errorf("round %d: from TERM to the end: got %v, want within shutdown_timeout of %v", round, took, grace)
		}
		if p.cmd.ProcessState.ExitCode() < 0 && strings.Contains(p.log(), "child started") {
			t.Errorf("round %d: got %v with children, want status 0", round, p.cmd.ProcessState)
		}
		for _, start := range append(s.marks("Quick"), s.marks("Breath")...) {
			if late := start.Sub(told); late > 200*time.Millisecond+scheduling {
				t.Errorf("round %d: got a start %v after TERM, want none", round, late)
			}
		}
		s.gone("")
		if n := value[int](s, `select count(*) from jobs where state = 'running'`); n != 0 {
			t.Errorf("round %d: running jobs: got %d, want 0", round, n)
		}
	}
	// Claimed and not started is excused.
	if n := value[int](s, `select count(*) from jobs where attempts - excused <> (state = 'done')::int`); n != 0 {
		t.Errorf("jobs with an attempt that counts and is not their last: got %d, want 0", n)
	}
	done := value[int](s, `select count(*) from jobs where state = 'done'`)
	if got := len(s.marks("Quick")) + len(s.marks("Breath")); got != done || done == 0 {
		t.Errorf("starts: got %d, want one for each of the %d jobs done, which are some", got, done)
	}
	s.cleanEnd(fmt.Sprintf("%d done, %d pending", done, 1800-done))
}

// The children have not come to know their database yet: there is no lease to give back, and nothing to wait for.
func TestTermBeforeTheDatabaseHasAnsweredEndsInOrder(t *testing.T) {
	t.Parallel()
	const most = 3 * time.Second // of a shutdown_timeout of six
	for name, knock := range map[string]func(t *testing.T) (address string, wait func(*process)){
		"refused":  refusedAddress,
		"answered": silentAddress,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, wait := knock(t)
			s := &site{t: t, dir: t.TempDir(), url: "postgres://queuekeeper@" + address + "/x?sslmode=disable"}
			t.Cleanup(s.clean)
			s.write("queues.toml", "lease = \"3s\"\nshutdown_timeout = \"6s\"\n"+twoQueues)
			p := s.run()
			wait(p)
			p.signal(syscall.SIGTERM)
			if took := p.exits(0); took > most {
				t.Errorf("from TERM to the end: got %v, want at once, or when the try to connect is over after 1s", took)
			}
			s.gone("")
		})
	}
}

// refusedAddress is one where nobody listens.
func refusedAddress(t *testing.T) (string, func(*process)) {
	listener := listenTCP(t)
	listener.Close()
	return listener.Addr().String(), func(p *process) {
		p.logs(`waiting for the database: queue=github .*refused`)
		p.logs(`waiting for the database: queue=slack .*refused`)
	}
}

// silentAddress is one where connections are taken and nothing is ever said.
func silentAddress(t *testing.T) (string, func(*process)) {
	listener := listenTCP(t)
	return listener.Addr().String(), func(*process) {
		if err := listener.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		for range 3 { // the supervisor's own, and those of the children
			conn, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
		}
	}
}

func listenTCP(t *testing.T) *net.TCPListener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.(*net.TCPListener)
}

// Ten at a time are on their way, and each that was begun is done, and known to be.
func TestInterruptAtAnyMomentLosesNoOutcome(t *testing.T) {
	t.Parallel()
	const rounds, each, seed = 6, 50, 7
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSite(t, `
[[worker]]
queue = "go"
concurrency = 10
`)
	for round := range rounds {
		done := value[int](s, `select count(*) from jobs where state = 'done'`)
		s.exec(`insert into jobs (queue, name) select 'go', 'Breath' from generate_series(1, $1)`, each)
		p := s.run()
		moment := []string{`state <> 'pending'`, `state = 'done'`}[random.IntN(2)] // one has just started, or just ended
		s.until(`select count(*) >= $1 from jobs where `+moment, done+random.IntN(each)+1)
		p.signal(syscall.SIGINT)
		p.exits(0)
		done = value[int](s, `select count(*) from jobs where state = 'done'`)
		s.cleanEnd(strings.TrimSuffix(fmt.Sprintf("%d done, %d pending", done, (round+1)*each-done), ", 0 pending"))
		if got := len(s.marks("Breathed")); got != done {
			t.Errorf("round %d of seed %d: jobs done: got %d, want the %d that have ended", round, seed, done, got)
		}
		if log := p.log(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
			t.Errorf("round %d of seed %d: log: got a stack in it, want none", round, seed)
		}
	}
	if got := value[int](s, `select max(attempts - excused) from jobs`); got != 1 {
		t.Errorf("attempts of a job that count: got up to %d, want 1", got)
	}
}

// One after the other they would take twelve seconds.
func TestAllQueuesDrainAtOnce(t *testing.T) {
	t.Parallel()
	const queues, grace = 6, 5 * time.Second
	file := "shutdown_timeout = \"5s\"\n"
	for n := range queues {
		file += fmt.Sprintf("[[worker]]\nqueue = \"q%d\"\ncommand = [\"sleep\", \"2\"]\n", n)
	}
	s := newSite(t, file)
	p := s.run()
	for n := range queues {
		p.ready(fmt.Sprint("q", n))
	}
	s.exec(`insert into jobs (queue, name) select 'q' || n, 'Sync' from generate_series(0, $1) n`, queues-1)
	eventually.OK(t, patience, func() error {
		if got := len(s.processes("sleep 2")); got != queues {
			return fmt.Errorf("commands: got %d, want %d", got, queues)
		}
		return nil
	})
	p.signal(syscall.SIGTERM)
	if took := p.exits(0); took > grace+time.Second {
		t.Errorf("from TERM to the end: got %v, want about 2s, the time of one job", took)
	}
	told := p.times(`draining: queue=q\d `)
	if len(told) != queues {
		t.Fatalf("children that drain: got %d, want %d", len(told), queues)
	}
	if spread := told[queues-1].Sub(told[0]); spread > 100*time.Millisecond+scheduling {
		t.Errorf("from the first child told to the last: got %v, want at most 100ms", spread)
	}
	s.cleanEnd("6 done")
}
