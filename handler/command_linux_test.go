package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/internal/eventually"
	"queuekeeper/internal/procs"
	"queuekeeper/jobs"
)

// shell runs scripts as the command of a worker and sees to it that each leaves nothing behind.
type shell struct {
	dir         string
	killAfter   time.Duration
	memoryLimit int64
	log         io.Writer
	args        json.RawMessage
	ctx         context.Context
}

func newShell(t *testing.T) *shell {
	return &shell{
		dir:       t.TempDir(),
		killAfter: 5 * time.Second,
		log:       io.Discard,
		args:      json.RawMessage(`{}`),
		ctx:       context.Background(),
	}
}

func (s *shell) job() jobs.Job {
	return jobs.Job{ID: 42, Queue: "github", Name: "Sync", Args: s.args, Lane: "default", Attempt: 3}
}

// run runs script and afterwards waits until nobody of its process group is alive.
func (s *shell) run(t *testing.T, script string) error {
	t.Helper()
	err := s.exec(t, "/bin/sh", "-c", "echo $$ >leader; "+script)
	leader, readErr := os.ReadFile(filepath.Join(s.dir, "leader"))
	if readErr != nil {
		t.Fatalf("read the leader's pid: %v; the command's error is %v", readErr, err)
	}
	pgid, _ := strconv.Atoi(strings.TrimSpace(string(leader)))
	eventually.OK(t, 5*time.Second, func() error {
		if left := group(pgid); len(left) > 0 {
			return fmt.Errorf("group %d of %q: got %v, want none left", pgid, script, left)
		}
		return nil
	})
	return err
}

func (s *shell) exec(t *testing.T, argv ...string) error {
	t.Helper()
	worker := config.Worker{Queue: "github", Command: argv, Dir: s.dir, KillAfter: s.killAfter, MemoryLimit: s.memoryLimit}
	set, err := New(worker, nil, hclog.New(&hclog.LoggerOptions{Output: s.log, DisableTime: true}))
	if err != nil {
		t.Fatalf("New: got %v, want nil", err)
	}
	h, err := set.Find("Sync")
	if err != nil {
		t.Fatalf("Find: got %v, want nil", err)
	}
	return outcomeOf(s.ctx, h, s.job())
}

// group lists the living members of a process group.
func group(pgid int) (pids []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" && fields[0] != "X" {
			pids = append(pids, path)
		}
	}
	return pids
}

// expire makes the context of the scripts end with cause once the script has made the file "up".
func (s *shell) expire(t *testing.T, cause error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	t.Cleanup(func() { cancel(nil) })
	s.ctx = ctx
	go func() {
		for ; ctx.Err() == nil; <-time.After(time.Millisecond) {
			if _, err := os.Stat(filepath.Join(s.dir, "up")); err == nil {
				cancel(cause)
			}
		}
	}()
}

func TestExitStatusIsTheOutcome(t *testing.T) {
	for _, c := range []struct {
		script string
		kind   jobs.Kind
		want   string
	}{
		{"echo fine >&2; exit 0", jobs.KindDone, ""},
		{"exit 3", jobs.KindFail, "exit status 3"},
		{"echo out; echo err >&2; exit 1", jobs.KindFail, "exit status 1: "},
		{"echo no such issue >&2; exit 65", jobs.KindDead, "exit status 65: no such issue"},
		{"echo 429; exit 75", jobs.KindThrottled, "exit status 75: 429"},
		{"echo dying; kill -9 $$", jobs.KindFail, "killed by signal 9: dying"},
		{"printf 'bad \\000 \\377'; exit 1", jobs.KindFail, `exit status 1: bad \x00 \xff`},
	} {
		err := newShell(t).run(t, c.script)
		if got := Judge(err, 0); got.Kind != c.kind || !strings.HasPrefix(got.Error, c.want) {
			t.Errorf("%s: got %s with %q, want %s with %q", c.script, got.Kind, got.Error, c.kind, c.want)
		}
	}
}

func TestCommandGetsTheJob(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://localhost/app")
	t.Setenv("JOB_ID", "of somebody else")
	s := newShell(t)
	s.args = json.RawMessage(`{"quote": "'\"$(id)` + "`id`" + `\n-x"}`)
	if err := s.run(t, "cat >args; env >env; pwd -P >dir"); err != nil {
		t.Fatalf("run: got %v, want nil", err)
	}
	if got := s.read(t, "args"); got != string(s.args) {
		t.Errorf("standard input: got %q, want %q", got, s.args)
	}
	if want, _ := filepath.EvalSymlinks(s.dir); s.read(t, "dir") != want+"\n" {
		t.Errorf("folder: got %q, want %q", s.read(t, "dir"), want)
	}
	env := strings.Split(s.read(t, "env"), "\n")
	for _, want := range []string{"JOB_ID=42", "JOB_QUEUE=github", "JOB_NAME=Sync", "JOB_ATTEMPT=3", "JOB_LANE=default",
		"DATABASE_URL=postgres://localhost/app"} {
		if !slices.Contains(env, want) {
			t.Errorf("environment: got none of %s, want it", want)
		}
	}
}

func (s *shell) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatalf("read what the command wrote: %v", err)
	}
	return string(text)
}

// EX07.
func TestArgsOfAnySizeArriveWhole(t *testing.T) {
	for _, size := range []int{131_071, 131_072, 1 << 20, 20 << 20} {
		s := newShell(t)
		s.args = json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
		if err := s.run(t, "cat >args"); err != nil {
			t.Errorf("args of %d bytes: got %v, want nil", size, err)
		}
		if got := s.read(t, "args"); got != string(s.args) {
			t.Errorf("args of %d bytes: got %d bytes, want all", size, len(got))
		}
	}
}

// EX15.
func TestNotReadingArgsIsNoFailure(t *testing.T) {
	for _, script := range []string{"cat", "true", "head -c 1", "sleep 0.3; cat >/dev/null", "exec 0<&-; sleep 0.3"} {
		s := newShell(t)
		s.args = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
		if err := s.run(t, script); err != nil {
			t.Errorf("%s: got %v, want nil", script, err)
		}
	}
}

// PR15.
func TestCommandSeesOnlyTheThreeStandardDescriptors(t *testing.T) {
	if err := procs.CloseOnExec(); err != nil { // as every process of the program does first
		t.Fatalf("CloseOnExec: %v", err)
	}
	err := newShell(t).run(t, "ls /proc/self/fd; exit 1")
	if got, want := err.Error(), "exit status 1: 0\n1\n2\n3"; got != want { // 3: the folder ls reads
		t.Errorf("descriptors: got %q, want %q", got, want)
	}
}

// PR09 and EX01.
func TestOutputIsConsumedWhateverItsShape(t *testing.T) {
	var log bytes.Buffer
	s := newShell(t)
	s.log = &log
	err := s.run(t, `for n in 70000 5000000; do head -c $n /dev/zero | tr '\0' x; echo; done
		i=0; while [ $i -lt 10000 ]; do echo line $i; i=$((i+1)); done
		printf 'no newline' >&2`)
	if err != nil {
		t.Errorf("run: got %v, want nil", err)
	}
	for _, want := range []string{
		`output: job="Sync" id=42 stream=stdout line="xxx`, ` [... 68000 bytes cut]"`, ` [... 4998000 bytes cut]"`,
		`stream=stdout line="line 0"`, `stream=stdout line="line 9999"`, `stream=stderr line="no newline"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log: got none of %q, want it", want)
		}
	}
	if got := strings.Count(log.String(), "\n"); got != 10_003 {
		t.Errorf("log: got %d lines, want 10003", got)
	}
}

// EX01.
func TestMemoryIsBoundedWhateverIsPrinted(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, script := range []string{
		"head -c 10000000 /dev/zero >&2; head -c 10000000 /dev/zero; exit 3",
		"head -c 100000000 /dev/zero; exit 3",
		"exec >&-; head -c 10000000 /dev/zero; exit 3", // closed early, written on
	} {
		err := newShell(t).run(t, script)
		if err == nil || !strings.HasPrefix(err.Error(), "exit status 3") || len(err.Error()) > tailMax+100 {
			t.Errorf("%s: got %.50v…, want exit status 3 and at most %d bytes of output", script, err, tailMax)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 16<<20 {
		t.Errorf("heap: got %d more bytes, want under 16 MB", grown)
	}
}

// EX02.
func TestEndOfTheContextEndsTheWholeGroup(t *testing.T) {
	for _, script := range []string{
		"touch up; sleep 300; true",
		"(touch up; sleep 300)",
		"touch up; sleep 300 | cat",
		"sleep 300 & touch up; wait",
		`trap "" TERM; touch up; while :; do sleep 1; done`,
		"touch up; kill -STOP $$",
		"touch up; exec sleep 300",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			s.killAfter = 300 * time.Millisecond
			cause := errors.New("timed out after 2s")
			s.expire(t, cause)
			begun := time.Now()
			if err := s.run(t, script); !errors.Is(err, cause) {
				t.Errorf("run: got %v, want the cause of the end", err)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("run: got the end after %v, want it soon after the context's", took)
			}
		})
	}
}

// EX05: whatever the command makes of SIGTERM, the caller learns why it was sent.
func TestCauseOfTheEndWinsOverTheExitStatus(t *testing.T) {
	for _, status := range []int{0, 1, 65, 143} {
		s := newShell(t)
		cause := errors.New("stopped")
		s.expire(t, cause)
		err := s.run(t, fmt.Sprintf("trap 'echo bye; exit %d' TERM; touch up; while :; do sleep 0.01; done", status))
		how := fmt.Sprintf("stopped: command ended with exit status %d: ", status)
		if !errors.Is(err, cause) || jobs.IsPermanent(err) {
			t.Errorf("exit status %d on TERM: got %v, want only the cause, %v", status, err, cause)
		}
		if got := fmt.Sprint(err); !strings.HasPrefix(got, how) || !strings.Contains(got, "bye") {
			t.Errorf("exit status %d on TERM: got %q, want %q and bye", status, got, how)
		}
	}
}

func TestCommandThatIgnoresTermIsKilledAfterItsTime(t *testing.T) {
	s := newShell(t)
	s.killAfter = 200 * time.Millisecond
	s.expire(t, context.Canceled)
	err := s.run(t, `trap "" TERM; touch up; while :; do sleep 1; done`)
	if err == nil || !strings.Contains(err.Error(), "killed by signal 9") {
		t.Errorf("run: got %v, want killed by signal 9", err)
	}
}

func TestNothingStartsOnceTheContextHasEnded(t *testing.T) {
	s := newShell(t)
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	s.ctx = ctx
	if err := s.exec(t, "/bin/sh", "-c", "touch up"); !errors.Is(err, cause) {
		t.Errorf("exec: got %v, want %v", err, cause)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "up")); err == nil {
		t.Errorf("command: got run, want it not started")
	}
}

// EX03.
func TestLeftoversAreKilledWhenTheLeaderEnds(t *testing.T) {
	for _, script := range []string{
		"sleep 300 & exit 0",
		"(sleep 300 & exit 0) & wait",                             // a double fork
		`sh -c 'trap "" TERM HUP; sleep 300; sleep 300' & exit 0`, // that would ignore anything milder
	} {
		begun := time.Now()
		if err := newShell(t).run(t, script); err != nil {
			t.Errorf("%s: got %v, want nil: the leader ended well", script, err)
		}
		if took := time.Since(begun); took > held {
			t.Errorf("%s: got the end after %v, want it with the leader's", script, took)
		}
	}
}

// A process that left the group outlives the job; that it still holds the output open must not hold the job.
func TestOutputHeldOpenFromOutsideTheGroupIsLetGo(t *testing.T) {
	s := newShell(t)
	begun := time.Now()
	err := s.run(t, `setsid sh -c 'echo $$ >left; exec sleep 300' & while [ ! -s left ]; do sleep 0.01; done`)
	if err != nil {
		t.Errorf("run: got %v, want nil", err)
	}
	if took := time.Since(begun); took > held+2*time.Second {
		t.Errorf("run: got the end after %v, want it about %v after the leader's", took, held)
	}
	left, _ := strconv.Atoi(strings.TrimSpace(s.read(t, "left")))
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Errorf("kill process %d that left the group: %v", left, err)
	}
}

// EX06.
func TestCommandThatCannotStartIsAFailureWithItsReason(t *testing.T) {
	s := newShell(t)
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), mode); err != nil {
			t.Fatalf("write script: %v", err)
		}
	}
	write("not-executable", "#!/bin/sh\n", 0o644)
	write("no-shebang", "exit 0\n", 0o755)
	write("crlf", "#!/bin/sh\r\nexit 0\r\n", 0o755)
	write("fine", "#!/bin/sh\nexit 0\n", 0o755)
	for _, c := range []struct {
		program string
		want    error
	}{
		{"/nope", syscall.ENOENT},
		{s.dir, syscall.EACCES},
		{"./not-executable", syscall.EACCES},
		{"./no-shebang", syscall.ENOEXEC},
		{"./crlf", syscall.ENOENT},
		{"./fine", nil}, // relative to the file, not to where we run
	} {
		err := s.exec(t, c.program)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.program, err, c.want)
		}
		if got := Judge(err, time.Second); c.want != nil && (got.Kind != jobs.KindFail || got.Delay != time.Second) {
			t.Errorf("%s: got %+v, want a failure with back-off", c.program, got)
		}
	}
	for _, program := range []string{"", "no-such-program-anywhere"} {
		if err := s.exec(t, program); Judge(err, 0).Kind != jobs.KindFail {
			t.Errorf("%q: got %v, want a failure", program, err)
		}
	}
}
