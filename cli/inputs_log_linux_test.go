package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func init() { testHandlers["go"]["PanicWhenLet"] = poison(panicWhenLet) }

// panicWhenLet waits for a file of the test and then ends the process.
func panicWhenLet() {
	for {
		if _, err := os.Stat(os.Getenv(siteEnv) + "/let"); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	go panic("with its last job")
	select {}
}

// runReadBy starts a supervisor whose log is read by another program, and by nobody once that has left.
func (s *site) runReadBy(program string, args ...string) (*process, *exec.Cmd) {
	s.t.Helper()
	in, out := pipe(s.t)
	reader := exec.Command(program, args...)
	reader.Stdin = in
	if err := reader.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd := s.command([]string{"run"}, dividedEnv+"=10")
	cmd.Stdout, cmd.Stderr = out, out
	p := s.start(cmd)
	in.Close()
	out.Close()
	return p, reader
}

// A reader that leaves is not one that was never there: the first write that fails comes in the middle of the work.
func TestReaderOfTheLogThatLeavesCostsNoJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p, head := s.runReadBy("head", "-n", "1")
	if err := head.Wait(); err != nil {
		t.Fatal(err)
	}
	github := p.ready("github")
	p.ready("slack")
	kill(t, github)
	s.exec(`insert into jobs (queue, name) select q, 'Post' from unnest(array['github', 'slack']) q, generate_series(1, 10)`)
	s.allDone()
	p.ready("github")
	p.stop()
	s.cleanEnd("20 done")
}

func TestReaderOfTheLogThatIsKilledBeforeTermHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, held)
	s.insert("github", "Sync")
	p, cat := s.runReadBy("cat")
	p.ready("slack")
	s.running("sh -c until")
	_ = cat.Process.Kill()
	_ = cat.Wait()
	p.signal(syscall.SIGTERM)
	s.write("go", "")
	p.exits(0)
	s.cleanEnd("1 done")
}

// Two megabytes without an end of line are one line of the log, cut, and nobody waits for them.
func TestEndlessLineOfACommandIsCutAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "head -c 2097152 /dev/zero | tr '\\0' x"]
[[worker]]
queue = "slack"
command = ["echo", "posted"]
max_jobs_per_second = 20
`)
	s.exec(`insert into jobs (queue, name) select q, 'Print' from unnest(array['github', 'slack']) q, generate_series(1, 10)`)
	p := s.run()
	s.allDone()
	p.stop()
	for line := range strings.Lines(p.log()) {
		if !strings.HasPrefix(line, "20") || len(line) > 4096 {
			t.Errorf("line: got %.100q of %d bytes, want one that begins with the time and has at most 4096", line, len(line))
		}
	}
	cut, whole := 0, 0
	for _, line := range p.printed() {
		switch {
		case line == "posted":
			whole++
		case strings.HasPrefix(line, strings.Repeat("x", 1000)) && strings.HasSuffix(line, " bytes cut]"):
			cut++
		}
	}
	if cut != 10 || whole != 10 {
		t.Errorf("lines that were cut, and lines of the other queue: got %d and %d, want 10 of each", cut, whole)
	}
	s.cleanEnd("20 done")
}

// A megabyte that comes when the end has begun is in the log to its last line.
func TestOutputOfADrainingJobIsInTheLog(t *testing.T) {
	t.Parallel()
	const lines = 900 // fewer than may wait for the reader
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "until test -e go; do sleep 0.02; done; seq -f %01100.0f 900; echo that was all"]
`)
	s.insert("github", "Print")
	p := s.run()
	s.running("sh -c until")
	p.signal(syscall.SIGTERM)
	p.logs(`draining: queue=github jobs=1`)
	s.write("go", "")
	p.exits(0)
	printed := p.printed()
	if got := len(printed); got != lines+1 {
		t.Fatalf("lines of the output: got %d, want %d", got, lines+1)
	}
	for k := range lines {
		if got, want := strings.TrimLeft(printed[k], "0"), strconv.Itoa(k+1); got != want {
			t.Fatalf("line of the output: got %s, want %s", got, want)
		}
	}
	if got, want := printed[lines], "that was all"; got != want {
		t.Errorf("last line of the output: got %q, want %q", got, want)
	}
	s.cleanEnd("1 done")
}

// printed are the lines of the log that commands have printed.
func (p *process) printed() (lines []string) {
	p.s.t.Helper()
	for line := range strings.Lines(p.log()) {
		if _, text, found := strings.Cut(line, ` line="`); found {
			lines = append(lines, strings.TrimSuffix(text, "\"\n"))
		}
	}
	return lines
}

// The one who told it to leave hears why it could not, and a person reads it.
func TestPanicWhileDrainingIsInTheLog(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "go"
max_attempts = 1
[[worker]]
queue = "slack"
command = ["true"]
`)
	s.insert("go", "PanicWhenLet")
	p := s.run()
	child := p.ready("go")
	p.ready("slack")
	s.until(`select state = 'running' from jobs`)
	p.signal(syscall.SIGTERM)
	p.logs(`draining: queue=go jobs=1`)
	s.write("let", "")
	p.exits(1)
	p.logs(`^panic: with its last job$`)
	p.logs(`^goroutine \d+ `)
	p.logs(`child ended: queue=go .* cause="exit status 2: panic: with its last job`)
	p.logs(`a lease may remain until it runs out: queue=go`)
	s.gone("")

	next := s.run()
	s.until(`select state = 'dead' from jobs`)
	got := value[string](s, `select attempts || ' ' || last_error from jobs`)
	// The first has a second to store the cause before it leaves.
	if want := fmt.Sprintf(`^1 (exit status 2: panic: with its last job\n|process \S+/%d is gone$)`, child); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("attempts, last_error: got %q, want one like %q", got, want)
	}
	next.ready("slack")
	next.stop()
	s.cleanEnd("1 dead")
}
