package cli_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// untilLet is a command that runs until the test lets it end.
const untilLet = "until test -e let; do sleep 0.01; done"

func (s *site) let() { s.t.Helper(); s.write("let", "") }

// busy is a file with a budget, and a queue whose jobs run until they are let end.
func busy(budget string) string {
	return `
shutdown_timeout = "` + budget + `"
[[worker]]
queue = "github"
command = ["sh", "-c", "` + untilLet + `"]
[[worker]]
queue = "slack"
command = ["true"]
`
}

// inHand starts a supervisor that is busy with one job.
func inHand(t *testing.T, budget string) (*site, *process) {
	t.Helper()
	s := newSite(t, busy(budget))
	s.insert("github", "Sync")
	p := s.run()
	s.running("sh -c until")
	p.ready("slack")
	return s, p
}

const draining = `draining: queue=github jobs=1`

func TestJobInHandFinishesAfterTerm(t *testing.T) {
	s, p := inHand(t, "25s")
	p.signal(syscall.SIGTERM)
	p.logs(draining)
	s.insert("github", "Sync") // not started any more
	s.let()
	p.exits(0)
	s.cleanEnd("1 done, 1 pending")
}

// Whatever a child was doing when it was told: reading its settings, connecting, acquiring.
func TestTermAtAnyMomentOfTheStartLeavesNothing(t *testing.T) {
	s := newSite(t, twoQueues)
	for _, moment := range []string{`supervisor started`, `child started: queue=github`, `child started: queue=slack`,
		`queue acquired`} {
		p := s.run()
		p.logs(moment)
		p.stop()
		s.cleanEnd("")
	}
}

func TestTermOfAnIdleProgramEndsItAtOnce(t *testing.T) {
	s := newSite(t, twoQueues)
	p := s.run()
	p.ready("github")
	p.ready("slack")
	p.signal(syscall.SIGTERM)
	if took := p.exits(0); took > time.Second+scheduling {
		t.Errorf("from TERM to the end: got %v, want at once", took)
	}
	s.cleanEnd("")
}

// Many a process manager sends it to all it finds, and again. A command that wants to finish must be able to say so.
func TestTermToEveryProcessAtOnceLetsJobsFinish(t *testing.T) {
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "trap '' TERM; `+untilLet+`"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	s.insert("github", "Sync")
	p := s.run()
	s.running("sh -c trap '' TERM; until")
	s.running("sleep 0.01") // it has come past the trap
	p.ready("slack")
	all := s.processes("")
	for range 2 {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGTERM) // an error means that it has left already
		}
	}
	p.logs(draining)
	s.let()
	p.exits(0)
	s.cleanEnd("1 done")
}

func TestRepeatedTermChangesNothing(t *testing.T) {
	s, p := inHand(t, "25s")
	for range 5 {
		p.signal(syscall.SIGTERM)
	}
	p.logs(draining)
	s.let()
	p.exits(0)
	s.cleanEnd("1 done")
}

func TestJobPastTheBudgetOfTermIsExcused(t *testing.T) {
	t.Parallel()
	s, p := inHand(t, "2s")
	p.signal(syscall.SIGTERM)
	if took := p.exits(0); took > 2*time.Second+scheduling {
		t.Errorf("from TERM to the end: got %v, want within shutdown_timeout of 2s", took)
	}
	s.excused()
	s.cleanEnd("1 pending")
}

func TestSecondInterruptAndQuitEndWhatRuns(t *testing.T) {
	for name, signals := range map[string][]syscall.Signal{
		"INT twice": {syscall.SIGINT, syscall.SIGINT}, "QUIT": {syscall.SIGQUIT},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := inHand(t, "25s")
			for i, sig := range signals {
				if i > 0 {
					p.logs(`children told to leave: do=drain`)
				}
				p.signal(sig)
			}
			if took := p.exits(0); took > 10*time.Second {
				t.Errorf("from the signal to the end: got %v, want at once, not the 20 s that a drain waits for the job", took)
			}
			s.excused()
			s.cleanEnd("1 pending")
		})
	}
}

// A goroutine that ignores its context cannot be ended, and does not hold anything up.
func TestHandlerThatIgnoresItsContextDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
shutdown_timeout = "4s"
[[worker]]
queue = "go"
`)
	s.insert("go", "Hang")
	p := s.run()
	s.until(`select state = 'running' from jobs`)
	p.ready("go")
	p.signal(syscall.SIGTERM)
	if took := p.exits(0); took > 4*time.Second+scheduling {
		t.Errorf("from TERM to the end: got %v, want within shutdown_timeout of 4s", took)
	}
	s.excused()
	s.cleanEnd("1 pending")
}

// CONT comes along with TERM from some process managers. It resumes nothing.
func TestQuietProgramThatIsToldToContinueStillClaimsNothing(t *testing.T) {
	s, p := inHand(t, "25s")
	p.signal(syscall.SIGUSR2)
	p.logs(`quiet: queue=github quiet=true jobs=1`)
	s.insert("github", "Sync")
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
	p.logs(draining)
	s.let()
	p.exits(0)
	if got := value[int](s, `select max(attempts) from jobs where state = 'pending'`); got != 0 {
		t.Errorf("attempts of the job that came meanwhile: got %d, want 0", got)
	}
	s.cleanEnd("1 done, 1 pending")
}

func TestQuietLastsUntilHangupWhateverComes(t *testing.T) {
	s := newSite(t, `lease = "2s"`+twoQueues)
	p := s.run()
	p.ready("github")
	slack := p.ready("slack")
	p.signal(syscall.SIGUSR2)
	for _, queue := range []string{"github", "slack"} {
		p.logs(`quiet: queue=` + queue + ` quiet=true`)
		s.insert(queue, "Post")
	}
	s.renewed("github", "slack")
	kill(t, slack) // its successor is quiet too
	s.until(`select n = 2 from queues where queue = 'slack'`)
	p.signal(syscall.SIGCONT)
	s.renewed("github", "slack")
	if got := value[string](s, `select string_agg(state || ' ' || attempts - excused, ', ') from jobs`); got != "pending 0, pending 0" {
		t.Errorf("states and counted attempts while quiet: got %s, want pending 0, pending 0", got)
	}
	if ended := strings.Count(p.log(), "job ended"); ended > 0 {
		t.Errorf("jobs that ended while quiet: got %d, want 0", ended)
	}
	p.more(`status: state=running quiet=true .*queues="2 queues: 2 quiet"`, func() { p.signal(syscall.SIGUSR1) })
	p.signal(syscall.SIGHUP)
	s.allDone()
	p.stop()
	s.cleanEnd("2 done")
}

// renewed waits until each lease was renewed twice: the second time by a Step that knew all that had come before.
func (s *site) renewed(queues ...string) {
	s.t.Helper()
	for range 2 {
		for _, queue := range queues {
			before := value[time.Time](s, `select expires_at from queues where queue = $1`, queue)
			s.until(`select expires_at > $2 from queues where queue = $1`, queue, before)
		}
	}
}

func TestStatusSignalLogsEveryQueueAndChangesNothing(t *testing.T) {
	s, p := inHand(t, "25s")
	github := p.ready("github")
	p.signal(syscall.SIGUSR1)
	p.logs(`status: state=running quiet=false .* queues="2 queues: 2 ready"$`)
	p.logs(fmt.Sprintf(`status of queue: queue=github state=ready n=1 pid=%d jobs=\d`, github))
	p.logs(`status of queue: queue=slack state=ready n=1 `)
	s.let()
	s.allDone()
	p.stop()
	s.cleanEnd("1 done")
}

// excused fails unless the one job was started once, and that does not count.
func (s *site) excused() {
	s.t.Helper()
	if got, want := value[string](s, `select attempts || ' ' || attempts - excused from jobs`), "1 0"; got != want {
		s.t.Errorf("attempts, attempts - excused: got %s, want %s", got, want)
	}
}
