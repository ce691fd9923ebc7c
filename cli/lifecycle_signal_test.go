package cli_test

import (
	"syscall"
	"testing"
	"time"
)

// inHand starts a supervisor with a budget of two seconds and one job that runs for a time, in seconds.
func inHand(t *testing.T, seconds string) (*site, *process) {
	s := newSite(t, `
shutdown_timeout = "2s"
[[worker]]
queue = "github"
command = ["sleep", "`+seconds+`"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	s.insert("github", "Sync")
	p := s.run()
	s.running("sleep " + seconds)
	p.ready("slack")
	return s, p
}

func TestJobInHandFinishesAfterTerm(t *testing.T) {
	s, p := inHand(t, "0.8")
	p.signal(syscall.SIGTERM)
	s.insert("github", "Sync") // not started any more
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

func TestRepeatedTermChangesNothing(t *testing.T) {
	s, p := inHand(t, "0.8")
	for range 5 {
		p.signal(syscall.SIGTERM)
	}
	p.exits(0)
	s.cleanEnd("1 done")
}

func TestJobPastTheBudgetOfTermIsExcused(t *testing.T) {
	t.Parallel()
	s, p := inHand(t, "30")
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
			s, p := inHand(t, "30")
			for i, sig := range signals {
				if i > 0 {
					p.logs(`children told to leave: do=drain`)
				}
				p.signal(sig)
			}
			// Before the 1.6 s that a drain would wait for the job.
			if took := p.exits(0); took > time.Second+scheduling {
				t.Errorf("from the signal to the end: got %v, want at once", took)
			}
			s.excused()
			s.cleanEnd("1 pending")
		})
	}
}

// excused fails unless the one job was started once, and that does not count.
func (s *site) excused() {
	s.t.Helper()
	if got, want := value[string](s, `select attempts || ' ' || attempts - excused from jobs`), "1 0"; got != want {
		s.t.Errorf("attempts, attempts - excused: got %s, want %s", got, want)
	}
}
