package procs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"queuekeeper/internal/eventually"
)

// heirEnv is set in a process that inherits orphans and runs one test.
const heirEnv = "QUEUEKEEPER_TEST_HEIR"

// asHeir runs the test that calls it once more in such a process, started by the command with, and returns false;
// in that process it returns true.
func asHeir(t *testing.T, with ...string) bool {
	t.Helper()
	if os.Getenv(heirEnv) != "" {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			t.Fatalf("inherit orphans: %v", err)
		}
		return true
	}
	args := slices.Concat(with, []string{os.Args[0], "-test.v", "-test.timeout=60s", "-test.run=^" + t.Name() + "$"})
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), heirEnv+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if passed := strings.Contains(string(out), "--- PASS: "+t.Name()); err != nil || !passed {
		t.Fatalf("the test as an heir: got %v and\n%s\nwant it passed", err, out)
	}
	return false
}

func none(int) bool { return false }

// known are the children somebody waits for.
type known struct {
	sync.Mutex
	pids map[int]bool
}

func (k *known) has(pid int) bool { return k.pids[pid] }

// run runs script and returns its exit status.
func (k *known) run(script string) (int, error) {
	cmd := exec.Command("/bin/sh", "-c", script)
	k.Lock()
	err := cmd.Start()
	if err == nil {
		k.pids[cmd.Process.Pid] = true
	}
	k.Unlock()
	if err != nil {
		return 0, err
	}
	err = cmd.Wait()
	k.Lock()
	delete(k.pids, cmd.Process.Pid)
	k.Unlock()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return 0, err // the status is lost
	}
	return cmd.ProcessState.ExitCode(), nil
}

func TestOrphansAreReapedAndNoExitStatusIsLost(t *testing.T) {
	if !asHeir(t) {
		return
	}
	const runs = 200
	k := &known{pids: map[int]bool{}}
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range numbers {
				want := i % 100
				// The inner shell does not wait for what it starts.
				got, err := k.run(fmt.Sprintf("(exit 77 &); exit %d", want))
				if got != want || err != nil {
					t.Errorf("exit status of run %d: got %d and %v, want %d", i, got, err, want)
				}
			}
		})
	}
	go func() {
		for i := range runs {
			numbers <- i
		}
		close(numbers)
		workers.Wait()
		k.Lock()
		k.pids = nil
		k.Unlock()
	}()

	reaped := 0
	for running := true; running; {
		k.Lock()
		running = k.pids != nil
		n, err := ReapOrphans(k.has)
		k.Unlock()
		if err != nil {
			t.Fatalf("ReapOrphans: got %v, want nil", err)
		}
		reaped += n
	}
	reapUntil(t, runs-reaped)
	if left, err := children(); len(left) > 0 || err != nil {
		t.Errorf("children after all: got %v and %v, want none", left, err)
	}
}

// reapUntil reaps want more orphans, and fails the test if there are fewer or more.
func reapUntil(t *testing.T, want int) {
	t.Helper()
	reaped := 0
	eventually.OK(t, 30*time.Second, func() error {
		n, err := ReapOrphans(none)
		if reaped += n; err != nil || reaped != want {
			return fmt.Errorf("orphans reaped: got %d and %v, want %d", reaped, err, want)
		}
		return nil
	})
}

func TestOnlyDeadOrphansAreReaped(t *testing.T) {
	if !asHeir(t) {
		return
	}
	ends, end, err := os.Pipe()
	if err != nil {
		t.Fatalf("make pipe: %v", err)
	}
	orphaner := exec.Command("/bin/sh", "-c", "(read never <&3 &)") // an orphan that lives until the pipe ends
	orphaner.ExtraFiles = []*os.File{ends}
	if err := orphaner.Run(); err != nil {
		t.Fatalf("leave an orphan: %v", err)
	}
	_ = ends.Close()

	ours := exec.Command("/bin/sh", "-c", "exit 3")
	if err := ours.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	if err := WaitNoReap(ours.Process.Pid); err != nil {
		t.Fatalf("wait for the end of our own: %v", err)
	}
	if got, err := ReapOrphans(func(pid int) bool { return pid == ours.Process.Pid }); got != 0 || err != nil {
		t.Errorf("ReapOrphans beside a living orphan and a dead child of ours: got %d and %v, want 0 and nil", got, err)
	}
	_ = ours.Wait()
	if got := ours.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit status of our own: got %d, want 3", got)
	}

	_ = end.Close()
	reapUntil(t, 1)
}

func TestProcessOneLeavesNoZombie(t *testing.T) {
	unshare := []string{"unshare", "--pid", "--fork", "--mount-proc"}
	if os.Getenv(heirEnv) == "" {
		if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
			t.Skipf("no pid namespace of our own here: %v: %s", err, out)
		}
	}
	if !asHeir(t, unshare...) {
		return
	}
	if got := os.Getpid(); got != 1 {
		t.Fatalf("own pid: got %d, want 1", got)
	}
	for range 50 {
		if err := exec.Command("/bin/sh", "-c", "(exit 77 &)").Run(); err != nil {
			t.Fatalf("leave an orphan: %v", err)
		}
	}
	reapUntil(t, 50)
	if got, err := all(); !slices.Equal(got, []int{1}) || err != nil {
		t.Errorf("processes after all: got %v and %v, want 1 alone", got, err)
	}
}

func TestChildrenOfEveryThreadAreFoundInEitherWay(t *testing.T) {
	// Each of two threads keeps to its goroutine until the look is over, so one is not the first of the process.
	looked := make(chan struct{})
	defer close(looked)
	errs := make(chan error)
	cmds := []*exec.Cmd{exec.Command("sleep", "300"), exec.Command("sleep", "300")}
	for _, cmd := range cmds {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			errs <- cmd.Start()
			<-looked
		}()
	}
	for range cmds {
		if err := <-errs; err != nil {
			t.Errorf("start: %v", err)
		}
	}

	ofThreads, errThreads := children()
	ofAll, errAll := childrenOf(os.Getpid())
	if errThreads != nil || errAll != nil {
		t.Errorf("children: got %v and %v, want nil twice", errThreads, errAll)
	}
	for _, cmd := range cmds {
		if cmd.Process == nil {
			continue
		}
		pid := cmd.Process.Pid
		if !slices.Contains(ofThreads, pid) || !slices.Contains(ofAll, pid) {
			t.Errorf("child %d: got %v from the threads, %v from the look at all, want it in both", pid, ofThreads, ofAll)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
