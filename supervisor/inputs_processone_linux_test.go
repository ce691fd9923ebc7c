package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/wire"
)

// unshare starts a process as the first of a pid namespace, as a container does.
var unshare = []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}

// orphans leaves processes to the first one of the namespace, for ever, each with a status of its own.
const orphans = "(while sleep 0.01; do (sh -c 'sleep 0.01; exit 77' &); done) &\n"

// startAsProcessOne starts a supervisor as process 1. A shell was that before, and has run the script.
func startAsProcessOne(t *testing.T, p plan, script string) *process {
	t.Helper()
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no pid namespace of our own here: %v: %s", err, out)
	}
	return start(t, p, func(cmd *exec.Cmd) {
		path, err := exec.LookPath(unshare[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = path
		cmd.Args = slices.Concat(unshare, []string{"sh", "-c", script + `exec "$@"`, "sh"}, cmd.Args)
	})
}

// Who collects the orphans of others must not take the exit status of a child from whoever waits for that.
func TestProcessOneSeesHowEachChildEndedWhileOrphansEnd(t *testing.T) {
	t.Parallel()
	r := startAsProcessOne(t, plan{Queues: endings, RestartMin: time.Millisecond}, orphans)
	r.seesEveryEnd(t, 10)
	eventually.OK(t, patience, func() error {
		if dead := zombies(t, r.one(t)); len(dead) > 0 {
			return fmt.Errorf("children of process 1 that were not collected: got %v, want none", dead)
		}
		return nil
	})
	r.endsAsProcessOne(t)
}

// strangers are processes that come and go, each the leader of a session. They note the numbers they have, and whether one
// did not end by itself.
const strangers = `echo 450 >/proc/sys/kernel/pid_max || exit 9
for k in 1 2 3 4 5; do
	while :; do setsid sh -c 'echo $$ >>"$0.numbers"; exec sleep 0.1' "$` + eventsEnv + `" || echo "$?" >>"$` + eventsEnv + `.hit"; done &
done
`

// With so few numbers a process soon has that of a child that is gone.
func TestNoStrangerIsHitWhereNumbersOfProcessesComeBackSoon(t *testing.T) {
	t.Parallel()
	needsOwnPIDMax(t)
	r := startAsProcessOne(t, plan{Queues: endings, RestartMin: time.Millisecond}, strangers+orphans)
	r.seesEveryEnd(t, 10)
	eventuallyTrue(t, "stranger that has the number of an earlier child", func() bool { return r.sharedNumbers(t) > 0 })
	if hit, err := os.ReadFile(r.path + ".hit"); err == nil {
		t.Errorf("statuses of strangers that did not end by themselves: got %q, want none", hit)
	}
	r.endsAsProcessOne(t)
}

// needsOwnPIDMax skips the test where it would change the number of processes of the whole machine.
func needsOwnPIDMax(t *testing.T) {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	release := unix.ByteSliceToString(name.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 14 {
		t.Skipf("Linux %s: a pid namespace has a pid_max of its own since 6.14", release)
	}
}

// endings are queues whose children end: some are killed, others told to exit.
var endings = []string{"drains.a", "puppet.a", "drains.b", "puppet.b"}

// seesEveryEnd ends the children of all those queues so many times, and checks what the supervisor knows of each.
func (r *process) seesEveryEnd(t *testing.T, times int) {
	t.Helper()
	for n := 1; n <= times; n++ {
		for _, queue := range endings {
			r.await(t, "stub has settings", queue, n)
			if strings.HasPrefix(queue, "drains") {
				r.await(t, "stub is ready", queue, n)
				kill(t, r.hostPID(t, queue))
			} else {
				r.order(t, queue, fmt.Sprintf("exit %d", n))
			}
		}
	}
	for n := 1; n <= times; n++ {
		for _, queue := range endings {
			want := fmt.Sprintf("exit status %d", n)
			if strings.HasPrefix(queue, "drains") {
				want = "child killed by signal 9"
			}
			if got := r.await(t, "child died", queue, n).Cause; got != want {
				t.Errorf("end %d of %s: got %q, want %q", n, queue, got, want)
			}
		}
	}
	for _, queue := range endings {
		r.await(t, "stub has settings", queue, times+1)
	}
}

// hostPID is the number that the child of a queue has here; the one it knows is that of its namespace.
func (r *process) hostPID(t *testing.T, queue string) (pid int) {
	t.Helper()
	pids := r.commands(t, "queuekeeper: "+queue+"\x00")
	if len(pids) != 1 {
		t.Fatalf("processes of %s: got %v, want one", queue, pids)
	}
	return pids[0]
}

// one is the number that process 1 has here.
func (r *process) one(t *testing.T) int {
	t.Helper()
	pids := r.commands(t, os.Args[0]+"\x00supervise\x00")
	if len(pids) != 1 {
		t.Fatalf("supervisors: got %v, want one", pids)
	}
	return pids[0]
}

// commands are the living processes of this test whose command line begins so.
func (r *process) commands(t *testing.T, begin string) []int {
	t.Helper()
	return slices.DeleteFunc(r.marked(t), func(pid int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !bytes.HasPrefix(line, []byte(begin))
	})
}

// sharedNumbers is how many numbers both a child and a stranger have had.
func (r *process) sharedNumbers(t *testing.T) (count int) {
	t.Helper()
	text, err := os.ReadFile(r.path + ".numbers")
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		theirs[strings.TrimSpace(line)] = true
	}
	for _, e := range r.all(t, "child started", "", 0) {
		if theirs[strconv.Itoa(e.PID)] {
			count++
		}
	}
	return count
}

func (r *process) endsAsProcessOne(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(r.one(t), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.await(t, "supervisor ended", "", 0)
	want := wire.ExitOK
	if len(r.all(t, "a lease may remain until it runs out", "", 0)) > 0 { // of a child that was killed last and had no successor
		want = wire.ExitFailed
	}
	r.ends(t, want)
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
