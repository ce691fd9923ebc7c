package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// What a child died of is its job's error, and the attempt counts. One that is told to leave, by whomever, lets its job
// finish or gives it back. In each case there is a new child.
func TestSignalToAChildCostsAtMostTheAttemptOfItsJob(t *testing.T) {
	for sig, want := range map[syscall.Signal]string{
		syscall.SIGKILL: "dead 1 0 child killed by signal 9",
		syscall.SIGSEGV: "dead 1 0 exit status 2: SIGSEGV: segmentation violation",
		syscall.SIGABRT: "dead 1 0 exit status 2: SIGABRT: abort",
		syscall.SIGTERM: "done 1 0 ",
		syscall.SIGQUIT: "done 2 1 ",
	} {
		t.Run(strings.ReplaceAll(sig.String(), " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, `
[[worker]]
queue = "github"
max_attempts = 1
command = ["sh", "-c", "test $JOB_ATTEMPT != 1 || `+untilLet+`"]
`)
			p := s.run()
			child := p.ready("github")
			s.insert("github", "Sync")
			s.running("sh -c test")
			send(t, sig, child)
			if sig == syscall.SIGTERM {
				p.logs(draining)
				s.let()
			}
			s.until(`select state in ('done', 'dead') from jobs`)
			got := value[string](s, `select format('%s %s %s %s', state, attempts, excused, last_error) from jobs`)
			if !strings.HasPrefix(got, want) {
				t.Errorf("state, attempts, excused, last_error: got %q, want it to begin with %q", got, want)
			}
			p.logs(`child started: queue=github pid=\d+ n=2`)
			p.ready("github")
			p.stop()
			s.cleanEnd("1 " + strings.Fields(want)[0])
		})
	}
}

// Children of the first finish what they have while the second stands by. Their commands would meet in the folder that
// each makes and removes.
func TestSupervisorStartedRightAfterOneWasKilledNeverOverlaps(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
max_attempts = 1
command = ["sh", "-c", "mkdir working && sleep 0.4 && rmdir working"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	s.exec(`insert into jobs (queue, name) select 'github', 'Sync' from generate_series(1, 12)`)
	p := s.run()
	for range 3 {
		p.ready("github")
		p.ready("slack")
		s.running("sleep 0.4")
		kill(t, p.cmd.Process.Pid)
		next := s.run()
		p.exits(-1)
		p = next
	}
	s.allDone()
	p.ready("slack")
	p.stop()
	s.cleanEnd("12 done")
}

// Whichever the supervisor hears of first, it stops the other child and leaves no process. A lease may stay, for who
// died cannot give it back: the exit status says so, and the next start waits for nothing.
func TestChildKilledInTheMomentOfTermHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	for range 5 {
		p := s.run()
		github := p.ready("github")
		p.ready("slack")
		kill(t, github)
		p.signal(syscall.SIGTERM)
		p.exits(0, 1)
		s.gone("")
	}
	p := s.run()
	p.ready("github")
	p.ready("slack")
	p.stop()
	s.cleanEnd("")
}

// A deploy that puts another binary in place, or removes it, must not mix two versions: a new child is what its
// supervisor is.
func TestChildrenAreWhatTheirSupervisorIsWhateverBecomesOfTheFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	cmd := s.command([]string{"run"}, dividedEnv+"=10")
	copied := s.path("queuekeeper")
	if out, err := exec.Command("cp", cmd.Path, copied).CombinedOutput(); err != nil {
		t.Fatalf("copy the program: %v: %s", err, out)
	}
	cmd.Path = copied
	p := s.start(cmd)
	for n, deploy := range []func() error{
		func() error { return os.Rename(s.path("next"), copied) },
		func() error { return os.Remove(copied) },
	} {
		s.script("next", "exit 3")
		child := p.ready("github")
		if err := deploy(); err != nil {
			t.Fatal(err)
		}
		kill(t, child)
		p.logs(fmt.Sprintf(`child started: queue=github pid=\d+ n=%d`, n+2))
		s.until(`select pid <> $1 and supervisor is not null from queues where queue = 'github'`, child)
	}
	p.more(`status: .* binary="replaced on disk since the start"`, func() { p.signal(syscall.SIGUSR1) })
	p.stop()
	s.cleanEnd("")
}
