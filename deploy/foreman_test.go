package deploy_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// foreman starts one in a process group of its own, as a shell does, in an application's folder: the program is in PATH.
func foreman(t *testing.T) (s *site, pid int, wait func()) {
	s = newSite(t, "foreman")
	s.install("Procfile")
	s.write(".env", "DATABASE_URL="+s.url+"\n")
	cmd := s.command("foreman", "start", "-t", "30")
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(s.program)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	wait = s.start(cmd)
	return s, cmd.Process.Pid, wait
}

func TestForemanStopsInOrder(t *testing.T) {
	s, pid, wait := foreman(t)
	s.drains(func() func() { s.signal(pid, syscall.SIGTERM); return wait })
	s.logs(1, `exited with code 0$`)
	s.cleanEnd("2 done, 1 pending")
}

// Ctrl-C in a terminal is INT to the whole group, and then foreman sends TERM: to the supervisor that is a repeat.
func TestCtrlCUnderForemanDrainsOnce(t *testing.T) {
	s, pid, wait := foreman(t)
	s.drains(func() func() {
		s.signal(-pid, syscall.SIGINT)
		s.logs(1, `sending SIGTERM to all processes`)
		s.logs(1, `already ending: signal ignored: signal=TERM`)
		return wait
	})
	s.logs(1, `exited with code 0$`)
	s.cleanEnd("2 done, 1 pending")
}
