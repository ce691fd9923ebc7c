package procs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// limited builds the program in testdata/limited: without the race detector, which has a memory of its own.
func limited(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limited")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/limited")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func TestLimitOfMemoryEndsWhoNeedsMoreAndNobodyElse(t *testing.T) {
	program := limited(t)
	const oom = "fatal error: .*(out of|cannot allocate) memory.*" // it depends on what the memory was for
	for _, c := range []struct {
		what, limit, fill string
		status            int
		said              string // by the first line
	}{
		{"memory", "64", "32", 0, ""},
		{"memory", "64", "80", 2, oom},
		{"garbage", "64", "300", 0, ""}, // in the course of time, but never at once
		{"panic", "64", "", 2, "panic: out of memory"},
	} {
		crash, err := os.Create(filepath.Join(t.TempDir(), "crash"))
		if err != nil {
			t.Fatal(err)
		}
		defer crash.Close()
		cmd := exec.Command(program, c.what, c.limit, c.fill)
		cmd.ExtraFiles = []*os.File{crash}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run() // its error is the exit status
		said, _, _ := strings.Cut(stderr.String(), "\n")
		if got := cmd.ProcessState.ExitCode(); got != c.status || !regexp.MustCompile("^"+c.said+"$").MatchString(said) {
			t.Errorf("%s of %s MB under a limit of %s MB: got exit status %d, %q; want %d, a match of %q", c.what, c.fill, c.limit, got, said, c.status, c.said)
		}
		text, err := os.ReadFile(crash.Name())
		if got, want := OutOfMemory(string(text)), c.said == oom; err != nil || got != want {
			t.Errorf("%s of %s MB under a limit of %s MB: got out of memory: %v, %v; want %v of\n%.500s", c.what, c.fill, c.limit, got, err, want, text)
		}
	}
}

func TestLimitOfMemoryGoesToCommandsAndIsNeverRaised(t *testing.T) {
	program := limited(t)
	for size, want := range map[string]bool{"32": true, "256": false} {
		out, err := exec.Command(program, "command", "128", size).CombinedOutput()
		if got := err == nil; got != want {
			t.Errorf("command of %s MB under a limit of 128 MB: got %v, %s; want success: %v", size, err, out, want)
		}
	}
}

func TestNiceRaisesEveryThreadAndLowersNone(t *testing.T) {
	cmd := exec.Command(limited(t), "nice", "7")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	values, rest, _ := strings.Cut(string(out), "/autogroup")
	if got := strings.Fields(strings.TrimSuffix(values, "done\n")); len(got) != 50 || strings.Trim(strings.Join(got, ""), "7") != "" {
		t.Errorf("nice values of 50 commands: got %v, want 7 each", got)
	}
	if rest != "" && !strings.Contains(rest, " nice 7\n") {
		t.Errorf("session: got autogroup%s, want nice 7", rest)
	}
}
