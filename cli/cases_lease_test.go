package cli_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
)

// besides starts a second supervisor, in a folder of its own, for another queue of the same database. It looks every
// second for jobs that nobody works on.
func (s *site) besides() *process {
	s.t.Helper()
	other := siteAt(s.t, s.url, `
[[worker]]
queue = "other"
command = ["true"]
`)
	p := other.run(dividedEnv + "=60")
	p.ready("other")
	return p
}

// leaseGap looks at the lease of a queue until a query says true, and returns the longest time without a renewal. The
// lease must not run out meanwhile.
func (s *site) leaseGap(queue, until string) (longest time.Duration) {
	s.t.Helper()
	sql := `select clock_timestamp(), greatest(expires_at, 'epoch'), (` + until + `) from queues where queue = $1`
	var renewed, last time.Time
	eventually.OK(s.t, patience, func() error {
		var now, ends time.Time
		var enough bool
		if err := s.conn.QueryRow(context.Background(), sql, queue).Scan(&now, &ends, &enough); err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
		if enough {
			return nil
		}
		if !renewed.IsZero() {
			longest = max(longest, now.Sub(renewed))
		}
		if ends != last {
			renewed, last = now, ends
		}
		if !ends.After(now) {
			s.t.Fatalf("lease of %s: got it run out %v ago, want it renewed", queue, now.Sub(ends))
		}
		return fmt.Errorf("%s: got false, want true; jobs are\n%s", until, s.jobs())
	})
	return longest
}

// Others look for jobs to bring back all the while, and find none here. It is the same while the program drains.
func TestLeaseIsRenewedAsLongAsItsJobLasts(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	for _, draining := range []bool{false, true} {
		t.Run(fmt.Sprint("draining ", draining), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, `
lease = "2s"
shutdown_timeout = "20s"
[[worker]]
queue = "github"
command = ["sh", "-c", "echo begun >>begun; sleep 5"]
`)
			other := s.besides()
			p := s.run()
			p.ready("github")
			s.insert("github", "Sync")
			s.running("sleep 5")
			if draining {
				p.signal(syscall.SIGTERM)
			}
			s.exec(`insert into jobs (queue, name, state, epoch) values ('nobodys', 'Sync', 'running', 1)`)
			if got := s.leaseGap("github", `select state = 'done' from jobs where queue = 'github'`); got > lease/2+scheduling {
				t.Errorf("longest time without a renewal: got %v, want at most half of the lease of %v", got, lease)
			}
			s.until(`select state = 'pending' from jobs where queue = 'nobodys'`) // so the other did look
			if got := s.read("begun"); got != "begun\n" {
				t.Errorf("starts: got %q, want one", got)
			}
			got := value[string](s, `select format('%s %s %s', attempts, excused, last_error) from jobs where queue = 'github'`)
			if want := "1 0 "; got != want {
				t.Errorf("attempts, excused, last_error: got %q, want %q", got, want)
			}
			if !draining {
				p.signal(syscall.SIGTERM)
			}
			p.exits(0)
			other.stop()
			s.cleanEnd("1 done, 1 pending")
		})
	}
}

// It has the only processor of its process to itself, and the machine is busy. Not beside other tests.
func TestHandlerThatSpinsCostsNoLease(t *testing.T) {
	const lease = 3 * time.Second
	s := newSite(t, `
lease = "3s"
[[worker]]
queue = "go"
`)
	for range 4 {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		})
	}
	p := s.run("GOMAXPROCS=1")
	p.ready("go")
	s.insert("go", "Spin")
	s.until(`select state = 'running' from jobs`)
	if got := s.leaseGap("go", `select state = 'done' from jobs`); got > lease/2+2*scheduling {
		t.Errorf("longest time without a renewal: got %v, want at most half of the lease of %v", got, lease)
	}
	if got := len(s.marks("Spin")); got != 1 {
		t.Errorf("starts: got %d, want 1", got)
	}
	if took := value[float64](s, `select extract(epoch from finished_at - started_at)::float8 from jobs`); took < 2*lease.Seconds() {
		t.Errorf("time of the handler: got %.1fs, want it longer than two leases", took)
	}
	p.stop()
	s.cleanEnd("1 done")
}

// As after the sleep of a laptop whose queues another machine has looked after: nobody is left without a worker.
func TestQueuesWorkAgainAfterAllWereStoppedPastTheirLease(t *testing.T) {
	t.Parallel()
	const soon = 5 * time.Second
	s := newSite(t, `
lease = "1s"
[defaults]
command = ["sh", "-c", "test $JOB_NAME != Long || test $JOB_ATTEMPT != 1 || sleep 30"]
[[worker]]
queue = "github"
[[worker]]
queue = "mail"
[[worker]]
queue = "slack"
`)
	other := s.besides()
	p := s.run()
	queues := []string{"github", "mail", "slack"}
	for _, queue := range queues {
		p.ready(queue)
	}
	s.insert("github", "Long")
	s.running("sleep 30")
	all := s.processes("")
	send(t, syscall.SIGSTOP, all...)
	s.until(`select state = 'pending' from jobs`) // the other has seen that the lease is over
	s.until(`select max(expires_at) < now() - interval '2 s' from queues where queue <> 'other'`)
	slices.Reverse(all)
	send(t, syscall.SIGCONT, all...)
	begin := time.Now()
	for _, queue := range queues {
		s.insert(queue, "Sync")
	}
	s.until(`select count(*) = 3 from jobs where name = 'Sync' and state = 'done'`)
	if took := time.Since(begin); took > soon+scheduling {
		t.Errorf("from CONT to a job done of each queue: got %v, want at most %v", took, soon)
	}
	s.allDone()
	s.gone("sleep 30")
	p.workEach(queues...)
	p.stop()
	other.stop()
	s.cleanEnd("4 done")
}
