package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/windows"
)

// scheduling is what a claim about time allows a busy machine on top.
const scheduling = 500 * time.Millisecond

// A job whose child is killed is pending again within a second with the true cause, and comes back after its
// back-off. Its command is gone, the rate holds across the restart, and the neighbour does not notice.
func TestJobOfAKilledChildComesBack(t *testing.T) {
	t.Parallel()
	const rate, neighbourRate = 10, 2
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "test $JOB_NAME != Sleep || test $JOB_ATTEMPT != 1 || sleep 30"]
max_jobs_per_second = 10
[[worker]]
queue = "steady"
command = ["true"]
max_jobs_per_second = 2
`)
	s.exec(`insert into jobs (queue, name)
select 'github', case n when 8 then 'Sleep' else 'Quick' end from generate_series(1, 25) n`)
	s.exec(`insert into jobs (queue, name) select 'steady', 'Quick' from generate_series(1, 10) n`)
	p := s.run()
	s.running("sleep 30")
	child := p.ready("github")
	first := value[time.Time](s, `select locked_at from jobs where name = 'Sleep'`)

	killed := value[time.Time](s, `select clock_timestamp()`)
	kill(t, child)
	s.until(`select state = 'pending' from jobs where name = 'Sleep'`)
	back := value[time.Time](s, `select clock_timestamp()`)
	s.gone("sleep 30")

	if took := back.Sub(killed); took > time.Second+scheduling {
		t.Errorf("from kill -9 to pending: got %v, want at most 1s", took)
	}
	got := value[string](s, `select format('%s %s %s', attempts, excused, last_error) from jobs where name = 'Sleep'`)
	if want := "1 0 child killed by signal 9"; got != want {
		t.Errorf("attempts, excused, last_error: got %s, want %s", got, want)
	}
	due := value[time.Time](s, `select run_at from jobs where name = 'Sleep'`)
	if !due.After(killed) {
		t.Errorf("next attempt: got %v, want after its back-off", due)
	}
	s.allDone()
	if second := value[time.Time](s, `select started_at from jobs where name = 'Sleep'`); second.Before(due) {
		t.Errorf("second start: got %v, want not before %v", second, due)
	}
	starts := append(values[time.Time](s, `select started_at from jobs where queue = 'github'`), first)
	// The first is of its claim, a quarter of a second before its start at most, and the others are as late as the
	// message that told of them: these times hold no whole second to the limit.
	const window = 700 * time.Millisecond
	if got, want := windows.Largest(starts, window), windows.Allowed(rate, 1, time.Second); got > want {
		t.Errorf("starts in %v: got %d, want at most the %d of a second", window, got, want)
	}
	if got, want := largestGap(s, "steady"), 2*time.Second/neighbourRate; got > want {
		t.Errorf("largest gap between the neighbour's starts: got %v, want at most %v", got, want)
	}
	p.stop()
	s.cleanEnd("35 done")
}

func largestGap(s *site, queue string) (gap time.Duration) {
	starts := values[time.Time](s, `select started_at from jobs where queue = $1 order by started_at`, queue)
	for i := range len(starts) - 1 {
		gap = max(gap, starts[i+1].Sub(starts[i]))
	}
	return gap
}

// Every window over every start: of six children, two of which were released in order, the others killed.
func TestLimitHoldsAcrossKillsAndRestarts(t *testing.T) {
	t.Parallel()
	const rate, queued = 20, 60
	s := newSite(t, `
[[worker]]
queue = "go"
max_jobs_per_second = 20
`)
	s.exec(`insert into jobs (queue, name) select 'go', 'Mark' from generate_series(1, $1)`, queued)
	p := s.run()
	for life := 1; life < 6; life++ {
		child := p.ready("go")
		s.until(`select count(*) >= $1 from jobs where state = 'done'`, 8*life)
		if life == 3 {
			p.stop()
			p = s.run()
		} else {
			kill(t, child)
			s.until(`select pid <> $1 or supervisor is null from queues`, child)
		}
	}
	s.allDone()
	starts := s.marks("Mark")
	if got, want := windows.Largest(starts, time.Second), windows.Allowed(rate, 1, time.Second); got > want {
		t.Errorf("starts in a second: got %d, want at most %d", got, want)
	}
	if got := len(starts); got > queued+4 {
		t.Errorf("starts: got %d, want at most one of the %d jobs again for each of 4 kills", got, queued)
	}
	p.stop()
	s.cleanEnd("60 done")
}

func TestChildrenOfAKilledSupervisorDrainAndLeave(t *testing.T) {
	s, p := inHand(t, "25s")
	kill(t, p.cmd.Process.Pid)
	p.exits(-1)
	p.logs(draining)
	s.insert("github", "Sync") // not started any more
	s.let()
	eventually.OK(t, patience, func() error {
		if left := s.processes(""); len(left) > 0 {
			return fmt.Errorf("processes after the supervisor's end: got %v, want none", left)
		}
		return nil
	})
	s.cleanEnd("1 done, 1 pending")
}

// With everything killed nobody released the leases. On the same host the holder is known to be gone: nobody
// waits for the lease to run out, and what its children had started is killed before their jobs start again.
func TestRestartAfterEverythingWasKilledTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
lease = "30s"
[[worker]]
queue = "github"
command = ["sh", "-c", "test $JOB_ATTEMPT != 1 || sleep 30"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	id := s.insert("github", "Sync")
	first := s.run()
	s.running("sleep 30")
	github, slack := first.ready("github"), first.ready("slack")
	// Held still first: nobody sees the others die and still does something about it.
	all := []int{first.cmd.Process.Pid, github, slack}
	send(t, syscall.SIGSTOP, all...)
	send(t, syscall.SIGKILL, all...)
	first.exits(-1)
	s.running("sleep 30")

	begin := time.Now()
	second := s.run()
	second.ready("github")
	second.ready("slack")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("take-over: got %v, want seconds, not the lease of 30s", took)
	}
	got := value[string](s, `select attempts || ' ' || last_error from jobs where id = $1`, id)
	if !strings.HasPrefix(got, "1 process ") || !strings.HasSuffix(got, fmt.Sprintf("/%d is gone", github)) {
		t.Errorf("attempts, last_error: got %q, want 1 process HOST/%d is gone", got, github)
	}
	s.allDone()
	s.gone("sleep 30") // before the second attempt began, not just now: it sleeps for longer than the test lasts
	second.stop()
	s.cleanEnd("1 done")
}

// The commands of two children of one queue would meet in the folder that each makes and removes.
func TestTwoSupervisorsNeverWorkOneQueueAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
max_attempts = 1
command = ["sh", "-c", "mkdir working && sleep 0.02 && rmdir working"]
`)
	s.exec(`insert into jobs (queue, name) select 'github', 'Sync' from generate_series(1, 40)`)
	first := s.run()
	holder := first.ready("github")
	second := s.run()
	told := second.logs(`standing by.*`)
	if want := fmt.Sprintf("/%d", holder); !strings.Contains(told, want) {
		t.Errorf("second supervisor: got %q, want it to name the holder %s", told, want)
	}
	s.until(`select count(*) > 5 from jobs where state = 'done'`)
	first.stop()
	begin := time.Now()
	second.ready("github")
	if took := time.Since(begin); took > time.Second {
		t.Errorf("take-over after TERM: got %v, want at once", took)
	}
	third := s.run()
	third.logs(`standing by`)
	s.allDone()
	third.stop()
	second.stop()
	s.cleanEnd("40 done")
	var pids []string
	for _, p := range []*process{first, second, third} {
		pids = append(pids, fmt.Sprint(strings.Count(p.log(), "status=done")))
	}
	if slices.Contains(pids[:2], "0") || pids[2] != "0" {
		t.Errorf("jobs done by each supervisor: got %v, want some, some, 0", pids)
	}
}
