package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"queuekeeper/internal/testdb"
)

// Its user may have no more processes, whoever they are of. The others work on, and the queue is back once there is room.
func TestChildThatMayNotBeStartedForWantOfProcessesIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := siteAt(t, testdb.Own(t).URL("postgres"), `
[[worker]]
queue = "github"
command = ["true"]
[[worker]]
queue = "go"
`)
	cmd := s.command([]string{"run"}, dividedEnv+"=10")
	if os.Geteuid() == 0 { // no such limit holds for root
		s.becomeNobody(cmd)
	}
	p := s.start(cmd)
	github, handlers := p.ready("github"), p.ready("go")
	restore := p.limitProcesses(1)
	kill(t, github)
	p.logs(`\[ERROR\] child not started: queue=github n=2 error=".*resource temporarily unavailable" again_in=\d`)
	p.logs(`\[ERROR\] child not started: queue=github n=2 .* again_in=[1-9]`)
	s.insert("go", "Object")
	s.insert("github", "Sync")
	s.until(`select state = 'done' from jobs where queue = 'go'`)
	restore()
	s.allDone()
	p.ready("github")
	if now := p.ready("go"); now != handlers {
		t.Errorf("child of go: got process %d, want still %d", now, handlers)
	}
	p.stop()
	s.cleanEnd("2 done")
}

// becomeNobody has a command run as the user nobody, who comes to neither the program nor the site by itself.
func (s *site) becomeNobody(cmd *exec.Cmd) {
	s.t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody(s.t)}
	program := s.path("queuekeeper")
	if out, err := exec.Command("cp", cmd.Path, program).CombinedOutput(); err != nil {
		s.t.Fatalf("copy the program: %v: %s", err, out)
	}
	cmd.Path = program
	for path, mode := range map[string]os.FileMode{program: 0o755, s.dir: 0o777, filepath.Dir(s.dir): 0o755, s.conn.Config().Host: 0o711} {
		if err := os.Chmod(path, mode); err != nil {
			s.t.Fatal(err)
		}
	}
}

func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if errUID != nil || errGID != nil {
		t.Fatalf("user nobody: got %v, want numbers", u)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// limitProcesses has a supervisor start nothing while its user has so many processes or more, and returns what takes
// that back.
func (p *process) limitProcesses(most uint64) (restore func()) {
	p.s.t.Helper()
	var ours unix.Rlimit // the supervisor's too, so far
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &ours); err != nil {
		p.s.t.Fatal(err)
	}
	set := func(to uint64) {
		p.s.t.Helper()
		text := strconv.FormatUint(to, 10)
		if to == unix.RLIM_INFINITY {
			text = "unlimited"
		}
		cmd := exec.Command("prlimit", fmt.Sprint("--pid=", p.cmd.Process.Pid), "--nproc="+text+":")
		cmd.SysProcAttr = p.cmd.SysProcAttr // not even root may do that to another user
		if out, err := cmd.CombinedOutput(); err != nil {
			p.s.t.Fatalf("%v: %v: %s", cmd.Args, err, out)
		}
	}
	set(most)
	return func() { p.s.t.Helper(); set(ours.Cur) }
}
