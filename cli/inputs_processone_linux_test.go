package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
)

// startAsProcessOne starts a supervisor as process 1, as a container without an init does. The process that it returns
// is the one that made the namespace, and exits as process 1 does.
func (s *site) startAsProcessOne() *process {
	s.t.Helper()
	unshare := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		s.t.Skipf("no pid namespace of our own here: %v: %s", err, out)
	}
	cmd := s.command([]string{"run"}, dividedEnv+"=10")
	named := s.path("queuekeeper") // its name makes it the program
	if err := os.Symlink(cmd.Path, named); err != nil && !errors.Is(err, os.ErrExist) {
		s.t.Fatal(err)
	}
	var err error
	if cmd.Path, err = exec.LookPath(unshare[0]); err != nil {
		s.t.Fatal(err)
	}
	cmd.Args = slices.Concat(unshare, []string{named, "run"})
	return s.start(cmd)
}

// one waits for process 1 and returns the number that it has here.
func (p *process) one() (pid int) {
	p.s.t.Helper()
	eventually.OK(p.s.t, patience, func() error {
		maker := p.cmd.Process.Pid
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", maker, maker))
		var err error
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err
	})
	return pid
}

// Half of them leave the session of their job and outlive it, the others are killed at its end. All are left to process
// 1, which has nothing to do with any of them.
func TestProcessOneCollectsWhatJobsLeave(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "for k in $(seq 25); do (setsid sleep 0.5 &); (sleep 30 &); done >/dev/null 2>&1"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	s.exec(`insert into jobs (queue, name) select 'github', 'Fork' from generate_series(1, 2)`)
	s.insert("slack", "Post")
	p := s.startAsProcessOne()
	s.allDone()
	one := p.one()
	eventually.OK(t, patience, func() error {
		if left := s.processes("sleep"); len(left) > 0 {
			return fmt.Errorf("processes that jobs left: got %v, want none", left)
		}
		if dead := zombies(t, one); len(dead) > 0 {
			return fmt.Errorf("children of process 1 that were not collected: got %v, want none", dead)
		}
		return nil
	})
	kill(t, s.running("queuekeeper: github"))
	p.logs(`child died: queue=github .* cause="child killed by signal 9"`)
	s.insert("github", "Fork")
	s.allDone()
	send(t, syscall.SIGTERM, one)
	p.exits(0)
	s.cleanEnd("4 done")
}

// zombies are the children of a process that have ended and were not collected.
func zombies(t *testing.T, of int) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, _ := os.ReadFile("/proc/" + entry.Name() + "/stat") // what is no process has none
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 || fields[0] != "Z" || fields[1] != strconv.Itoa(of) {
			continue
		}
		pid, _ := strconv.Atoi(entry.Name())
		pids = append(pids, pid)
	}
	return pids
}

// The kernel keeps from process 1 what it does not yet catch, so the signal is sent until it is heard. Until the
// supervisor hears it, it is the Go runtime that ends process 1, with status 2.
func TestTermOfProcessOneAtAnyMomentEndsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := s.startAsProcessOne()
		one := p.one()
		// Not waiting: before the program, in the middle of its start, and after.
		time.Sleep(time.Duration(random.Int64N(int64(10*time.Millisecond) << (2 * (seed % 3)))))
		eventually.OK(t, patience, func() error {
			if syscall.Kill(one, syscall.SIGTERM) == nil {
				return errors.New("process 1: got it alive, want it gone")
			}
			return nil
		})
		want := 2
		if strings.Contains(p.log(), "children told to leave") {
			want = 0
		}
		p.exits(want)
		s.cleanEnd("")
		if t.Failed() {
			t.Fatalf("seed %d failed", seed)
		}
	}
}
