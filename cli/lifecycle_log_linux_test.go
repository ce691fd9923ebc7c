package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What becomes of the log becomes of nothing else: jobs are done, and TERM ends it all in order.
func TestLogThatTakesNothingCostsNoJob(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, cmd *exec.Cmd){
		"full":      fullPipe,
		"closed":    closedPipe,
		"/dev/full": fullDevice,
		"not open":  notOpen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, twoQueues)
			cmd := s.command([]string{"run"}, dividedEnv+"=10")
			spoil(t, cmd)
			p := s.start(cmd)
			github := p.ready("github")
			p.ready("slack")
			kill(t, github) // its supervisor and its successor have something to say too
			s.exec(`insert into jobs (queue, name) select q, 'Post' from unnest(array['github', 'slack']) q, generate_series(1, 10)`)
			s.allDone()
			p.ready("github")
			p.stop()
			s.cleanEnd("20 done")
		})
	}
}

// fullPipe is held open by somebody who does not read.
func fullPipe(t *testing.T, cmd *exec.Cmd) {
	_, out := pipe(t)
	if _, err := unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(make([]byte, os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
}

func closedPipe(t *testing.T, cmd *exec.Cmd) {
	in, out := pipe(t)
	in.Close()
	cmd.Stdout, cmd.Stderr = out, out
}

func fullDevice(t *testing.T, cmd *exec.Cmd) {
	out, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	cmd.Stdout, cmd.Stderr = out, out
}

// notOpen is what a shell does that closes all three.
func notOpen(t *testing.T, cmd *exec.Cmd) {
	if err := os.Symlink(cmd.Path, filepath.Join(cmd.Dir, "queuekeeper")); err != nil { // its name makes it the program
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `exec ./queuekeeper run <&- >&- 2>&-`}
}

func pipe(t *testing.T) (in, out *os.File) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	return in, out
}

// Lines beyond what is kept for the reader are lost and counted, and the reader is told once it reads.
func TestLinesNobodyReadInTimeAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "go"
concurrency = 100
`)
	s.exec(`insert into jobs (queue, name) select 'go', 'Object' from generate_series(1, 3000)`) // a line each
	cmd := s.command([]string{"run"}, dividedEnv+"=10")
	in, out := pipe(t)
	cmd.Stdout, cmd.Stderr = out, out
	p := s.start(cmd)
	s.allDone()
	out.Close() // ours: the end of the pipe is then the end of the program
	if err := in.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	told := false
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if !told && strings.Contains(lines.Text(), "log lines dropped: nobody read them: lines=") {
			told = true
			p.signal(syscall.SIGTERM)
		}
	}
	if !told {
		t.Fatal("log: got no word of dropped lines, want one")
	}
	p.exits(0)
	s.cleanEnd("3000 done")
}

// The runtime writes its last words before it ends the process, and here nobody takes them.
func TestChildThatHangsInItsLastWordsIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "go"
max_attempts = 1
`)
	s.insert("go", "Panic")
	s.insert("go", "Mark")
	cmd := s.command([]string{"run"}, dividedEnv+"=10", fmt.Sprint(watchedEnv, "=", watched))
	fullPipe(t, cmd)
	p := s.start(cmd)
	s.until(`select state = 'done' from jobs where name = 'Mark'`)
	got := value[string](s, `select state || ' ' || last_error from jobs where name = 'Panic'`)
	if want := "dead child hung: it gave no sign of life for "; !strings.HasPrefix(got, want) {
		t.Errorf("state, last_error: got %q, want it to begin with %q", got, want)
	}
	p.stop()
	s.cleanEnd("1 dead, 1 done")
}
