package procs

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// start runs script in /bin/sh as the leader of a session of its own and hands back its standard output.
func start(t *testing.T, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("make pipe: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = KillSession(cmd.Process.Pid)
			_ = cmd.Wait()
		}
	})
	return cmd, bufio.NewReader(out)
}

// line reads what the script prints once it is as far as the test wants it.
func line(t *testing.T, out *bufio.Reader) string {
	t.Helper()
	s, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("read from script: got %q and %v, want a line", s, err)
	}
	return strings.TrimSpace(s)
}

func members(t *testing.T, sid int) (pids []int) {
	t.Helper()
	everyone, err := all()
	if err != nil {
		t.Fatalf("list processes: %v", err)
	}
	for _, pid := range everyone {
		if s, live := session(pid); live && s == sid {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestKillSessionKillsEveryGroupOfTheSession(t *testing.T) {
	// set -m gives each background job a group of its own, which a kill of the leader's group would miss.
	cmd, out := start(t, `set -m; sleep 300 & (trap "" TERM HUP; sleep 300 & sleep 300) & echo up; wait`)
	line(t, out)
	sid := cmd.Process.Pid
	if got := len(members(t, sid)); got < 3 {
		t.Fatalf("members before: got %d, want at least 3", got)
	}
	if err := KillSession(sid); err != nil {
		t.Fatalf("KillSession: got %v, want nil", err)
	}
	if got := members(t, sid); got != nil {
		t.Errorf("members after: got %v, want none", got)
	}
}

func TestDeadLeaderIsLeftForWait(t *testing.T) {
	cmd, out := start(t, `sleep 300 >/dev/null & echo $!; exit 3`)
	left, _ := strconv.Atoi(line(t, out))
	if err := WaitNoReap(cmd.Process.Pid); err != nil {
		t.Fatalf("WaitNoReap: got %v, want nil", err)
	}
	if _, live := session(left); !live {
		t.Fatalf("leftover %d: got dead, want alive after its leader's end", left)
	}
	if err := KillSession(cmd.Process.Pid); err != nil {
		t.Fatalf("KillSession: got %v, want nil", err)
	}
	if _, live := session(left); live {
		t.Errorf("leftover %d: got alive, want dead", left)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit status of the leader: got %d, want 3", got)
	}
}

func TestSessionThatForksWithoutPauseIsKilled(t *testing.T) {
	cmd, out := start(t, `loop() { while :; do sleep 0.01 & done; }; loop & loop & echo up; wait`)
	line(t, out)
	if err := KillSession(cmd.Process.Pid); err != nil {
		t.Fatalf("KillSession: got %v, want nil", err)
	}
	if got := members(t, cmd.Process.Pid); got != nil {
		t.Errorf("members after: got %v, want none", got)
	}
}

func TestKillSessionRefusesWhatIsNoChildsSession(t *testing.T) {
	own, _ := session(os.Getpid())
	for _, sid := range []int{own, 1, 0, -1} {
		if err := KillSession(sid); err == nil {
			t.Errorf("KillSession(%d): got nil, want an error", sid)
		}
	}
}

func TestWaitNoReapOutlastsAStop(t *testing.T) {
	cmd, _ := start(t, `kill -STOP $$; exit 0`)
	pid := cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("wait for the stop: got status %#x and %v, want stopped", status, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- WaitNoReap(pid) }()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatalf("continue: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("WaitNoReap: got %v, want nil", err)
	}
	if _, live := session(pid); live {
		t.Errorf("process after WaitNoReap: got alive, want dead")
	}
}

func TestWaitNoReapRefusesAStranger(t *testing.T) {
	if err := WaitNoReap(os.Getppid()); err == nil {
		t.Errorf("WaitNoReap of no child: got nil, want an error")
	}
}

func TestStartTimeTellsLivesApart(t *testing.T) {
	first, ok := StartTime(os.Getpid())
	if again, _ := StartTime(os.Getpid()); !ok || first <= 0 || again != first {
		t.Errorf("own start time: got %d, %v, then %d, want the same number above 0", first, ok, again)
	}
	cmd, out := start(t, `echo up; exec sleep 300`)
	line(t, out)
	if later, ok := StartTime(cmd.Process.Pid); !ok || later < first {
		t.Errorf("start time of a child: got %d, %v, want at least our own, %d", later, ok, first)
	}
	_ = cmd.Process.Kill()
	_ = WaitNoReap(cmd.Process.Pid)
	if _, ok := StartTime(cmd.Process.Pid); ok {
		t.Errorf("start time of a dead child not reaped: got one, want none")
	}
	_ = cmd.Wait()
	if _, ok := StartTime(cmd.Process.Pid); ok {
		t.Errorf("start time of a reaped child: got one, want none")
	}
}

func TestNameOfACommandCannotForgeItsFields(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a) Z 1 1 (b")
	if err := os.Symlink("/bin/sh", odd); err != nil {
		t.Fatalf("link: %v", err)
	}
	cmd := exec.Command(odd, "-c", "echo up; read never")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	line(t, bufio.NewReader(out))
	if sid, live := session(cmd.Process.Pid); !live || sid != cmd.Process.Pid {
		t.Errorf("session: got %d, alive %v, want %d, true", sid, live, cmd.Process.Pid)
	}
	_ = in.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
}

func TestBootIsKnown(t *testing.T) {
	if got := BootID(); len(got) != 36 || got != BootID() {
		t.Errorf("BootID: got %q, want the same 36 characters each time", got)
	}
	if got := PIDNamespace(); got == "" || got != PIDNamespace() {
		t.Errorf("PIDNamespace: got %q, want the same name each time", got)
	}
	before := BootClock()
	if after := BootClock(); before <= 0 || after < before {
		t.Errorf("BootClock: got %v, then %v, want it to run forward", before, after)
	}
}

func TestInheritedDescriptorsAreNotPassedOn(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer file.Close()
	fd, err := syscall.Dup(int(file.Fd())) // like one we were started with: not close-on-exec
	if err != nil {
		t.Fatalf("dup: %v", err)
	}
	defer syscall.Close(fd)
	if err := CloseOnExec(); err != nil {
		t.Fatalf("CloseOnExec: got %v, want nil", err)
	}
	out, err := exec.Command("/bin/sh", "-c", "[ ! -e /dev/fd/"+strconv.Itoa(fd)+" ] && echo kept").Output()
	if strings.TrimSpace(string(out)) != "kept" {
		t.Errorf("descriptor %d in a program: got it (%v), want it kept from there", fd, err)
	}
}
