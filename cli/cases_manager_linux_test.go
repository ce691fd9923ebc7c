package cli_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// read is the next notice; "" if none comes in that time.
func (m manager) read(t *testing.T, within time.Duration) string {
	t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1<<16)
	n, err := m.Read(buffer)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return string(buffer[:n])
}

// hears waits for a notice that begins so, and returns those before it but for STATUS and WATCHDOG, which come when
// they do.
func (m manager) hears(t *testing.T, begin string) (before []string) {
	t.Helper()
	for {
		notice := m.read(t, patience)
		switch {
		case strings.HasPrefix(notice, begin):
			return before
		case notice == "":
			t.Fatalf("notices: got %q, want %q", before, begin)
		case !strings.HasPrefix(notice, "STATUS=") && notice != "WATCHDOG=1":
			before = append(before, notice)
		}
	}
}

// first is hears for a notice before which there must be no other.
func (m manager) first(t *testing.T, begin string) {
	t.Helper()
	if before := m.hears(t, begin); len(before) > 0 {
		t.Errorf("notices before %q: got %q, want none", begin, before)
	}
}

// What a manager of the kind of systemd hears, from the start to the end, and that it is between the two of them: no
// child and no command can take part.
func TestManagerHearsTheWholeLifeOfASupervisor(t *testing.T) {
	t.Parallel()
	const watchdog = 2 * time.Second
	m := newManager(t)
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "env >env.new; mv env.new env"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	cmd := s.command([]string{"run"}, dividedEnv+"=10", "NOTIFY_SOCKET="+m.LocalAddr().String(), "WATCHDOG_USEC=2000000",
		"LISTEN_FDS=1", "LISTEN_PID=1", "LISTEN_FDNAMES=web")
	if err := os.Symlink(cmd.Path, s.path("queuekeeper")); err != nil { // its name makes it the program
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "export WATCHDOG_PID=$$; exec ./queuekeeper run"}
	p := s.start(cmd)

	m.first(t, "READY=1")
	if got := value[int](s, `select count(*) from queues where supervisor is not null`); got != 2 {
		t.Errorf("queues held when the program says that it is ready: got %d, want 2", got)
	}
	m.hears(t, "WATCHDOG=1")
	for range 2 {
		begin := time.Now()
		if m.hears(t, "WATCHDOG=1"); time.Since(begin) > watchdog {
			t.Errorf("signs of life: got one after %v, want half of %v between them", time.Since(begin), watchdog)
		}
	}

	p.signal(syscall.SIGSTOP)
	for m.read(t, 100*time.Millisecond) != "" { // what was sent before
	}
	if got := m.read(t, watchdog); got != "" {
		t.Errorf("notices of a supervisor that stands still: got %q, want none", got)
	}
	p.signal(syscall.SIGCONT)
	m.hears(t, "WATCHDOG=1")

	p.signal(syscall.SIGHUP)
	m.first(t, "RELOADING=1")
	m.first(t, "READY=1")

	s.insert("github", "Sync")
	s.allDone()
	child := environ(t, p.ready("github"))
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		if env := strings.Join(child, "\n"); strings.Contains(env, name+"=") || strings.Contains(s.read("env"), name+"=") {
			t.Errorf("environment of the child or its command: got %s in it, want none", name)
		}
	}
	p.signal(syscall.SIGTERM)
	m.first(t, "STOPPING=1")
	p.exits(0)
	s.cleanEnd("1 done")
}

// Whoever set NOTIFY_SOCKET is gone, or never was.
func TestMissingManagerHindersNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p := s.run("NOTIFY_SOCKET="+s.path("nobody"), "WATCHDOG_USEC=2000000")
	p.works()
}
