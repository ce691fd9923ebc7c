package cli_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/wire"
)

// held has a queue whose jobs run until there is a file "go".
const held = `
[[worker]]
queue = "github"
command = ["sh", "-c", "until test -e go; do sleep 0.02; done"]
[[worker]]
queue = "slack"
command = ["true"]
`

// It is not even there to be asked: only a kill ends it, and nobody else waits for it.
func TestChildThatIsStoppedWhileItComesUpIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	s.write("hang-github", "")
	p := s.runWatched()
	child := s.running("queuekeeper: github")
	eventually.OK(t, patience, func() error { // else the next would hang too
		if _, err := os.Stat(s.path("hang-github")); err == nil {
			return errors.New("child of github: got it not yet hanging, want it so")
		}
		return nil
	})
	send(t, syscall.SIGSTOP, child)
	slack := p.ready("slack")
	p.logs(`child killed: it did not leave in time: queue=github .* n=1$`)
	p.logs(`child died: queue=github .* n=1 cause="child hung: it did not come up for ` + (wire.Default().Boot / watched).String() + `"`)
	p.ready("github")
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	p.works()
}

// Every new child looks well for a moment. What is shown is what comes of it.
func TestQueueWhoseProcessDiesAgainAndAgainIsNotShownAsReady(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "go"
max_attempts = 1
[[worker]]
queue = "slack"
command = ["true"]
`)
	s.exec(`insert into jobs (queue, name) select 'go', 'Panic' from generate_series(1, 100)`)
	p := s.run()
	p.ready("slack")
	s.shows(`^go .*, restarting, [3-9] restarts$`,
		`^go: last exit \S+ ago: exit status 2: panic: in a goroutine of the handler$`, `^slack .* \S+/\d+$`)
	p.logs(`child died: queue=go .* n=[4-9] `)
	p.more(`status of queue: queue=go state=restarting n=\d+ again_in=\S+ `, func() { p.signal(syscall.SIGUSR1) })

	s.exec(`delete from jobs`)
	s.insert("go", "Mark")
	s.allDone()
	s.shows(`^go .* \S+/\d+, \d+ restarts$`)
	if got := p.children("slack"); got != 1 {
		t.Errorf("processes of slack: got %d, want 1", got)
	}
	p.stop()
	s.cleanEnd("1 done")
}

// As by `pkill -HUP queuekeeper`, which finds the children by that name too.
func TestHangupToEveryProcessOfThatNameTouchesNoChild(t *testing.T) {
	t.Parallel()
	s := newSite(t, held)
	s.insert("github", "Sync")
	p := s.run()
	s.running("sh -c until")
	before := []int{p.ready("github"), p.ready("slack")}
	for _, child := range before {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
		if err != nil || string(name) != "queuekeeper\n" {
			t.Errorf("name of child %d: got %q, %v, want queuekeeper", child, name, err)
		}
	}
	p.more(`file taken on: .* unchanged=2$`, func() { send(t, syscall.SIGHUP, append(before, p.cmd.Process.Pid)...) })
	s.write("go", "")
	s.allDone()
	if got := value[int](s, `select attempts from jobs`); got != 1 {
		t.Errorf("attempts: got %d, want 1", got)
	}
	if now := []int{p.ready("github"), p.ready("slack")}; !slices.Equal(now, before) {
		t.Errorf("children: got processes %v, want still %v", now, before)
	}
	p.stop()
	s.cleanEnd("1 done")
}

// A command that ignores TERM is killed in time for its queue to be given back.
func TestCommandThatIgnoresTermDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
shutdown_timeout = "8s"
[[worker]]
queue = "github"
command = ["sh", "-c", "trap '' TERM; sleep 3600; sleep 3600"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	s.insert("github", "Sync")
	p := s.run()
	s.running("sleep 3600")
	p.ready("slack")
	p.signal(syscall.SIGTERM)
	if took := p.exits(0); took > 8*time.Second+scheduling {
		t.Errorf("from TERM to the end: got %v, want within shutdown_timeout of 8s", took)
	}
	s.excused()
	s.cleanEnd("1 pending")
}
