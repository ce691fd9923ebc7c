package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"queuekeeper/internal/eventually"
)

// command is a program in the site's folder. What it prints goes to the log.
func (s *site) command(args ...string) *exec.Cmd {
	s.t.Helper()
	out, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { out.Close() })
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.Env = append(os.Environ(), siteEnv+"="+s.dir)
	return cmd
}

// start starts a command; wait waits for its end, and fails the test unless its exit status is 0.
func (s *site) start(cmd *exec.Cmd) (wait func()) {
	s.t.Helper()
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start %v: %v", cmd.Args, err)
	}
	return func() {
		s.t.Helper()
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("end of %v: got %v, want exit status 0", cmd.Args, err)
		}
	}
}

// does runs a command to its end.
func (s *site) does(args ...string) {
	s.t.Helper()
	s.start(s.command(args...))()
}

// prints runs a command to its end, and returns what it prints whatever its exit status.
func (s *site) prints(args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Stdout = nil
	out, err := cmd.Output()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		s.t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// signal sends a signal to a process, or with a negative number to a process group.
func (s *site) signal(pid int, sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Fatalf("send %v to %d: %v", sig, pid, err)
	}
}

func (s *site) log() string { return s.read("log") }

// logs waits until the log has so many matches of a pattern.
func (s *site) logs(n int, pattern string) {
	s.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	eventually.OK(s.t, patience, func() error {
		if got := len(re.FindAllString(s.log(), -1)); got < n {
			return fmt.Errorf("log: got %d matches of %q, want %d", got, pattern, n)
		}
		return nil
	})
}

// supervisor waits for the one supervisor of the site.
func (s *site) supervisor() (pid int) {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		pids := append(s.processes(s.program+" run "), s.processes("queuekeeper run ")...)
		if len(pids) != 1 {
			return fmt.Errorf("supervisors: got %v, want one", pids)
		}
		pid = pids[0]
		return nil
	})
	return pid
}

// processes are the living ones of this site whose command line begins with a text.
func (s *site) processes(begin string) (pids []int) {
	s.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Fatalf("list processes: %v", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + entry.Name() + "/environ") // empty once it is dead
		line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		line = bytes.ReplaceAll(line, []byte{0}, []byte{' '})
		if bytes.Contains(env, []byte(siteEnv+"="+s.dir+"\x00")) && strings.HasPrefix(string(line), begin) {
			pids = append(pids, pid)
		}
	}
	return pids
}
