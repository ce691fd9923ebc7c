package supervisor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"queuekeeper/internal/wire"
)

func TestEveryQueueHasItsChild(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains.a", "drains.b", "drains.c"}})
	pids := map[int]bool{}
	for _, e := range r.awaitSome(t, 3, "stub is ready", "", 0) {
		pids[e.PID] = true
	}
	if len(pids) != 3 {
		t.Errorf("processes of three queues: got %d, want 3", len(pids))
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestTwoWorkersForOneQueueAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains", "drains"}})
	r.ends(t, wire.ExitFailed)
	if got := len(r.all(t, "child started", "", 0)); got != 0 {
		t.Errorf("children started: got %d, want none", got)
	}
}

func TestSettingsArriveWholeAndSecret(t *testing.T) {
	t.Parallel()
	const padding = 1 << 20
	r := start(t, plan{Queues: []string{"drains.a", "drains.b"}, Padding: padding})
	got := r.awaitSome(t, 2, "stub has settings", "", 1)
	r.awaitSome(t, 2, "stub is ready", "", 1)
	for _, e := range got {
		if e.Bytes < padding || e.DatabaseURL != secret {
			t.Errorf("settings of %s: got %d bytes with database %q, want over %d with %q", e.Queue, e.Bytes, e.DatabaseURL, padding, secret)
		}
		if len(e.Supervisor) != 32 || e.Supervisor != got[0].Supervisor {
			t.Errorf("supervisor in settings of %s: got %q, want 32 digits, the same for all", e.Queue, e.Supervisor)
		}
		for _, name := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.PID), name))
			if err != nil || len(text) == 0 || bytes.Contains(text, []byte("s3cret")) {
				t.Errorf("%s of %s: got %q, %v, want it without the password", name, e.Queue, text, err)
			}
		}
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.PID), "cmdline"))
		if want := "queuekeeper: " + e.Queue + "\x00child\x00" + e.Queue + "\x00"; string(argv) != want {
			t.Errorf("arguments of the child: got %q, want %q", argv, want)
		}
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestChildInheritsNothingOfTheLauncher(t *testing.T) {
	t.Parallel()
	left, err := os.Create(filepath.Join(t.TempDir(), "left-open"))
	if err != nil {
		t.Fatalf("make file: %v", err)
	}
	defer left.Close()
	r := start(t, plan{Queues: []string{"drains.a", "drains.b", "drains.c"}}, func(cmd *exec.Cmd) {
		cmd.ExtraFiles = []*os.File{left, left}
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET=/run/n", "WATCHDOG_USEC=1", "WATCHDOG_PID=1", "LISTEN_FDS=1", "LISTEN_PID=1", "KEPT=1")
	})
	for _, e := range r.awaitSome(t, 3, "stub has settings", "", 1) {
		// Another child's control pipe among them would keep that child from seeing its supervisor die.
		if len(e.Files) > 0 {
			t.Errorf("files open in %s: got %v, want those of the protocol alone", e.Queue, e.Files)
		}
		if want := []string{"KEPT=1"}; !slices.Equal(e.Env, want) {
			t.Errorf("environment of %s: got %v, want %v of what was added", e.Queue, e.Env, want)
		}
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestChildThatCannotBeStartedIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"drains"}, Executable: "/no/such/file"})
	failed := r.awaitSome(t, 5, "child not started", "drains", 1)
	for k, e := range failed {
		checkDelay(t, 100, k+1, e.AgainIn)
	}
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestLogThatNobodyReadsEndsNothing(t *testing.T) {
	t.Parallel()
	gone, out, err := os.Pipe()
	if err != nil {
		t.Fatalf("make pipe: %v", err)
	}
	gone.Close()
	defer out.Close()
	r := start(t, plan{Queues: []string{"drains"}, LogsToo: true}, func(cmd *exec.Cmd) {
		cmd.Stdout, cmd.Stderr = out, out
	})
	kill(t, r.await(t, "stub is ready", "drains", 1).PID)
	r.await(t, "stub is ready", "drains", 2)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
}

func TestChildThatWritesGarbageIsHeardOut(t *testing.T) {
	t.Parallel()
	r := start(t, plan{Queues: []string{"babbles"}})
	r.await(t, "stub is ready", "babbles", 1)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK) // so its ready and its bye were read
	if got := r.await(t, "status lines were dropped", "babbles", 1).Lines; got != 8 {
		t.Errorf("lines dropped: got %d, want 8", got)
	}
	if got := len(r.all(t, "status line not understood: dropped, more of them are only counted", "babbles", 1)); got != 1 {
		t.Errorf("warnings at the first: got %d, want 1", got)
	}
}
