package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
)

// process is a running program.
type process struct {
	s   *site
	cmd *exec.Cmd
	out string // its standard output and error, and its children's
}

// command is the program with these arguments; env is added to its environment.
func (s *site) command(args []string, env ...string) *exec.Cmd {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: append([]string{"queuekeeper"}, args...), Dir: s.dir}
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.url, siteEnv+"="+s.dir)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// run starts a supervisor at a tenth of the fixed times.
func (s *site) run(env ...string) *process {
	s.t.Helper()
	return s.start(s.command([]string{"run"}, append([]string{dividedEnv + "=10"}, env...)...))
}

func (s *site) start(cmd *exec.Cmd) *process {
	s.t.Helper()
	out, err := os.CreateTemp(s.dir, "log-")
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = out, out
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start %v: %v", cmd.Args, err)
	}
	p := &process{s, cmd, out.Name()}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%v of process %d:\n%.20000s", cmd.Args, cmd.Process.Pid, p.log())
		}
	})
	return p
}

// does runs a command to its end and returns its output; it must exit with status 0.
func (s *site) does(env []string, args ...string) string {
	s.t.Helper()
	out, err := s.command(args, env...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *process) log() string {
	p.s.t.Helper()
	text, err := os.ReadFile(p.out)
	if err != nil {
		p.s.t.Fatal(err)
	}
	return string(text)
}

// logs waits until the log matches, and returns the first match.
func (p *process) logs(pattern string) (match string) {
	p.s.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	eventually.OK(p.s.t, patience, func() error {
		if match = re.FindString(p.log()); match == "" {
			return fmt.Errorf("log: got no match of %q, want one", pattern)
		}
		return nil
	})
	return match
}

// more does something and waits until the log has one more match, which it returns.
func (p *process) more(pattern string, do func()) (match string) {
	p.s.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	before := len(re.FindAllString(p.log(), -1))
	do()
	eventually.OK(p.s.t, patience, func() error {
		all := re.FindAllString(p.log(), -1)
		if len(all) <= before {
			return fmt.Errorf("log: got %d matches of %q, want one more", len(all), pattern)
		}
		match = all[before]
		return nil
	})
	return match
}

// reload writes the file anew and has it taken on.
func (p *process) reload(file string) {
	p.s.t.Helper()
	p.s.write("queues.toml", file)
	p.more(`file taken on: .*`, func() { p.signal(syscall.SIGHUP) })
}

// children is how many processes the queue has had so far.
func (p *process) children(queue string) int {
	return strings.Count(p.log(), "child started: queue="+queue+" ")
}

// ready waits until the queue is held by a child of this process, and returns that child's process id.
func (p *process) ready(queue string) (pid int) {
	p.s.t.Helper()
	eventually.OK(p.s.t, patience, func() error {
		held := values[int](p.s, `select pid from queues where queue = $1 and supervisor is not null`, queue)
		if len(held) != 1 {
			return fmt.Errorf("queue %s: got no holder, want one", queue)
		}
		pid = held[0]
		if parent := parent(pid); parent != p.cmd.Process.Pid {
			return fmt.Errorf("queue %s: got a holder whose parent is %d, want %d", queue, parent, p.cmd.Process.Pid)
		}
		return nil
	})
	return pid
}

// parent is the parent of a process; 0: it is gone.
func parent(pid int) (ppid int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, err := fmt.Sscanf(string(text[bytes.LastIndexByte(text, ')')+1:]), " %s %d", new(string), &ppid)
	if err != nil {
		return 0
	}
	return ppid
}

func (p *process) signal(sig os.Signal) {
	p.s.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.s.t.Fatalf("send %v: %v", sig, err)
	}
}

// exits waits for the end of the process, with one of these statuses, and returns how long that took.
func (p *process) exits(want ...int) time.Duration {
	p.s.t.Helper()
	begin := time.Now()
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
		p.s.t.Fatal(err)
	}
	if got := p.cmd.ProcessState.ExitCode(); !slices.Contains(want, got) {
		p.s.t.Errorf("exit status: got %v, want %d", p.cmd.ProcessState, want)
	}
	return time.Since(begin)
}

// stop ends a supervisor the usual way.
func (p *process) stop() {
	p.s.t.Helper()
	p.signal(syscall.SIGTERM)
	p.exits(0)
}

func kill(t *testing.T, pid int) {
	t.Helper()
	send(t, syscall.SIGKILL, pid)
}

func send(t *testing.T, sig syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatalf("send %v to %d: %v", sig, pid, err)
		}
	}
}
