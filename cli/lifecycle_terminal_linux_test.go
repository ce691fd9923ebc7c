package cli_test

import (
	"syscall"
	"testing"
	"time"
)

// runInTerminal starts a supervisor that is busy with one job, as a person does who sits before it.
func runInTerminal(t *testing.T) (*site, *process, *pty) {
	t.Helper()
	screen := terminal(t) // first, to be closed last: it is open as long as the program has it
	s := newSite(t, busy("25s"))
	s.insert("github", "Sync")
	cmd := s.command([]string{"run"}, dividedEnv+"=10")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen.far, screen.far, screen.far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := s.start(cmd)
	s.running("sh -c until")
	p.ready("slack")
	return s, p, screen
}

// The terminal sends it to all of its foreground group. Children are in none, nor is what they have started.
func TestInterruptOfATerminalLetsJobsFinish(t *testing.T) {
	t.Parallel()
	s, p, screen := runInTerminal(t)
	screen.types(t, "\x03")
	screen.shows(t, draining)
	s.let()
	p.exits(0)
	s.cleanEnd("1 done")
}

func TestSecondInterruptOfATerminalEndsWhatRuns(t *testing.T) {
	t.Parallel()
	s, p, screen := runInTerminal(t)
	screen.types(t, "\x03")
	screen.shows(t, "INT again ends it now")
	screen.types(t, "\x03")
	if took := p.exits(0); took > 10*time.Second {
		t.Errorf("from the second Ctrl-C to the end: got %v, want at once, not the 20 s that a drain waits for the job", took)
	}
	s.excused()
	s.cleanEnd("1 pending")
}
