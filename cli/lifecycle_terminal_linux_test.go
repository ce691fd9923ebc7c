package cli_test

import (
	"syscall"
	"testing"
	"time"
)

// runInTerminal starts a supervisor that is busy with one job, as a person does who sits before it.
func runInTerminal(t *testing.T, seconds string) (*site, *process, *pty) {
	t.Helper()
	screen := terminal(t) // first, to be closed last: it is open as long as the program has it
	s := newSite(t, busy(seconds))
	s.insert("github", "Sync")
	cmd := s.command([]string{"run"}, dividedEnv+"=10")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen.far, screen.far, screen.far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := s.start(cmd)
	s.running("sleep " + seconds)
	p.ready("slack")
	return s, p, screen
}

// The terminal sends it to all of its foreground group. Children are in none, nor is what they have started.
func TestInterruptOfATerminalLetsJobsFinish(t *testing.T) {
	t.Parallel()
	s, p, screen := runInTerminal(t, "0.8")
	screen.types(t, "\x03")
	screen.shows(t, "INT again ends it now")
	p.exits(0)
	s.cleanEnd("1 done")
}

func TestSecondInterruptOfATerminalEndsWhatRuns(t *testing.T) {
	t.Parallel()
	s, p, screen := runInTerminal(t, "30")
	screen.types(t, "\x03")
	screen.shows(t, "INT again ends it now")
	screen.types(t, "\x03")
	// Before the 1.6 s that a drain would wait for the job.
	if took := p.exits(0); took > time.Second+scheduling {
		t.Errorf("from the second Ctrl-C to the end: got %v, want at once", took)
	}
	s.excused()
	s.cleanEnd("1 pending")
}
