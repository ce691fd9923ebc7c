package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

// watched is how much sooner than in a real run these tests find who hangs.
const watched = 10

func (s *site) runWatched() *process {
	s.t.Helper()
	return s.run(fmt.Sprint(watchedEnv, "=", watched))
}

// sleeper has a queue whose first job hangs, and one beside it.
const sleeper = `
[[worker]]
queue = "github"
max_attempts = 1
command = ["sh", "-c", "test $JOB_ID != 1 || sleep 30"]
[[worker]]
queue = "slack"
command = ["true"]
`

// It neither works nor dies: only a kill frees its queue and ends what it started. What it was running may be why,
// so the attempt counts.
func TestChildThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t, sleeper)
	p := s.runWatched()
	github, slack := p.ready("github"), p.ready("slack")
	s.insert("github", "Sync")
	s.running("sleep 30")
	s.insert("github", "Sync")
	send(t, syscall.SIGSTOP, github)
	s.until(`select state = 'done' from jobs where id = 2`)
	s.gone("sleep 30")
	got := value[string](s, `select format('%s %s %s %s', state, attempts, excused, last_error) from jobs where id = 1`)
	if want := "dead 1 0 child hung: it gave no sign of life for " + (wire.Default().Silent / watched).String(); got != want {
		t.Errorf("state, attempts, excused, last_error: got %q, want %q", got, want)
	}
	if now := p.ready("github"); now == github {
		t.Errorf("child of github: got process %d still, want another", now)
	}
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	p.stop()
	s.cleanEnd("1 dead, 1 done")
}

func TestChildThatNeverComesUpIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t, sleeper)
	s.write("hang-github", "")
	s.exec(`insert into jobs (queue, name) values ('slack', 'Post'), ('github', 'Sync')`)
	p := s.runWatched()
	slack := p.ready("slack")
	p.logs(`child died: queue=github .* n=1 cause="child hung: it did not come up for ` + (wire.Default().Boot / watched).String() + `"`)
	s.allDone()
	if got := p.children("github"); got != 2 {
		t.Errorf("processes of github: got %d, want 2", got)
	}
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	p.stop()
	s.cleanEnd("2 done")
}

// As after the sleep of a laptop: whoever was stopped itself has missed its own time, not that of others.
func TestAllStoppedForAWhileGoOnAsBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.ReplaceAll(sleeper, "sleep 30", "sleep 3"))
	p := s.runWatched()
	before := []int{p.ready("github"), p.ready("slack")}
	s.insert("github", "Sync")
	command := s.running("sleep 3")
	all := append([]int{p.cmd.Process.Pid, command}, before...)
	send(t, syscall.SIGSTOP, all...)
	time.Sleep(2 * wire.Default().Silent / watched) // part of the script
	send(t, syscall.SIGCONT, all...)
	s.allDone()
	s.insert("slack", "Post")
	s.allDone()
	if got := value[int](s, `select max(attempts) from jobs`); got != 1 {
		t.Errorf("attempts of a job: got up to %d, want 1", got)
	}
	if now := []int{p.ready("github"), p.ready("slack")}; !slices.Equal(now, before) {
		t.Errorf("children: got processes %v, want still %v", now, before)
	}
	p.stop()
	s.cleanEnd("2 done")
}

// Its lease ran out and another supervisor has the queue: what it still does is fenced off, and it stands by.
func TestChildThatWakesAfterItsLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
lease = "2s"
[[worker]]
queue = "github"
command = ["sh", "-c", "test $JOB_ATTEMPT != 1 || `+untilLet+`"]
`)
	first := s.run()
	child := first.ready("github")
	s.insert("github", "Sync")
	s.running("sh -c test")
	second := s.run()
	second.logs(`standing by`)
	send(t, syscall.SIGSTOP, child)
	second.ready("github")
	s.until(`select state = 'done' and attempts = 2 from jobs`)
	before := value[string](s, `select jobs::text from jobs`)
	send(t, syscall.SIGCONT, child)
	first.logs(`standing by: queue=github`)
	if after := value[string](s, `select jobs::text from jobs`); after != before {
		t.Errorf("job: got %s, want still %s", after, before)
	}
	first.stop()
	second.stop()
	s.cleanEnd("1 done")
}
