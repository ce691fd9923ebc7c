package handler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/jobs"
)

// TestMain makes the test binary what the program is where it starts a command with a memory limit.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "limit" {
		os.Exit(Limit(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// limitedShell has a limit of so many megabytes.
func limitedShell(t *testing.T, megabytes int64) *shell {
	s := newShell(t)
	s.memoryLimit = megabytes << 20
	return s
}

func TestCommandThatNeedsMoreThanItsMemoryLimitFails(t *testing.T) {
	const buffer = "dd if=/dev/zero of=/dev/null count=1 bs=64M" // dd has a buffer of the size of a block
	for _, script := range []string{"exec " + buffer, buffer + " || exit 1"} {
		if err := limitedShell(t, 256).run(t, script); err != nil {
			t.Errorf("%s under a limit of 256 MB: got %v, want nil", script, err)
		}
		err := limitedShell(t, 32).run(t, script)
		if err == nil || !strings.HasPrefix(err.Error(), "exit status 1: ") || !strings.Contains(err.Error(), "memory") {
			t.Errorf("%s under a limit of 32 MB: got %v, want exit status 1 and a word of the memory", script, err)
		}
	}
}

// The limit is far below what this program has itself by then.
func TestLeastMemoryLimitHindersNoCommand(t *testing.T) {
	s := limitedShell(t, 16)
	for i := range 30 {
		if err := s.run(t, "exit 65"); !jobs.IsPermanent(err) {
			t.Fatalf("command %d: got %v, want exit status 65", i, err)
		}
	}
}

func TestCommandUnderALimitIsStartedLikeAnyOther(t *testing.T) {
	free, limited := newShell(t), limitedShell(t, 64)
	free.dir, free.args, limited.args = limited.dir, []byte(`{"a": 1}`), []byte(`{"a": 1}`)
	const script = `echo "$0 $*"; cat; pwd; env | grep ^JOB_ | sort; ls /proc/self/fd; ulimit -n
pid=$$; set -- $(cat /proc/$pid/stat); test $5 = $pid && echo leads its group; exit 3`
	want, got := free.exec(t, "sh", "-c", script, "name", "b c", ""), limited.exec(t, "sh", "-c", script, "name", "b c", "")
	if !strings.Contains(want.Error(), "leads its group") || got == nil || got.Error() != want.Error() {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Without the race detector, which has a memory of its own.
func TestNoLengthOfTheEnvironmentHindersACommandUnderALimit(t *testing.T) {
	program := filepath.Join(t.TempDir(), "limit")
	build := exec.Command("go", "build", "-o", program, "./testdata/limit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for n := range 20 {
		t.Setenv(fmt.Sprintf("LONG_%d", n), strings.Repeat("x", 100_000))
		cmd := exec.Command(program, strconv.Itoa(16<<20), "/bin/sh", "sh", "-c", fmt.Sprintf("test ${#LONG_%d} = 100000", n))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("with %d variables: got %v, %.300s, want nil", n+1, err, out)
		}
	}
}

func TestCommandUnderALimitIsEndedLikeAnyOther(t *testing.T) {
	s := limitedShell(t, 64)
	cause := errors.New("timed out")
	s.expire(t, cause)
	err := s.run(t, "trap 'exit 7' TERM; touch up; while :; do sleep 0.01; done")
	if want := "timed out: command ended with exit status 7"; !errors.Is(err, cause) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("run: got %v, want %s", err, want)
	}
}

func TestCommandThatCannotStartUnderALimitSaysTheSame(t *testing.T) {
	free, limited := newShell(t), limitedShell(t, 64)
	free.dir = limited.dir
	for name, mode := range map[string]os.FileMode{"no-interpreter": 0o755, "not-executable": 0o644} {
		if err := os.WriteFile(filepath.Join(free.dir, name), []byte("#!/nope\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(free.dir, "no-shebang"), []byte("exit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	for _, c := range []struct{ dir, program string }{
		{free.dir, "/nope"}, {free.dir, "./nope"}, {free.dir, free.dir}, {free.dir, "nope"}, {free.dir, ""},
		{free.dir, "./no-interpreter"}, {free.dir, "./not-executable"}, {free.dir, "./no-shebang"}, {"/nope", "true"},
	} {
		free.dir, limited.dir = c.dir, c.dir
		want, got := free.exec(t, c.program), limited.exec(t, c.program)
		if want == nil || got == nil || got.Error() != want.Error() {
			t.Errorf("%q in %s: got %v, want %v", c.program, c.dir, got, want)
		}
		for _, reason := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC} {
			if got, want := errors.Is(got, reason), errors.Is(want, reason); got != want {
				t.Errorf("%q in %s: got an error that is %v: %v, want %v", c.program, c.dir, reason, got, want)
			}
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("open descriptors: got %d, want %d as before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
