package supervisor

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"queuekeeper/internal/procs"
)

// maxCrash is how much of what a dying child says is kept, in bytes, and maxCrashLines how much of that becomes
// the error of its jobs.
const (
	maxCrash      = 8 << 10
	maxCrashLines = 12
)

// readCrash returns the beginning of what the Go runtime says of a crash. The rest is read too: a child must not
// hang in its last words.
func readCrash(r io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(r, maxCrash))
	_, _ = io.Copy(io.Discard, r)
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// cause is how a process ended, in the words that go into the last error of its jobs.
func cause(p *os.ProcessState, crash string, memoryLimit int64) string {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Sprintf("child killed by signal %d", w.Signal())
	}
	said := firstLines(crash, maxCrashLines)
	switch {
	case said == "":
		return fmt.Sprintf("exit status %d", p.ExitCode())
	case memoryLimit > 0 && procs.OutOfMemory(crash):
		return fmt.Sprintf("out of memory: memory_limit is %d MB", memoryLimit>>20)
	}
	return fmt.Sprintf("exit status %d: %s", p.ExitCode(), said)
}

func firstLines(text string, n int) string {
	lines := strings.SplitN(strings.TrimSpace(text), "\n", n+1)
	return strings.TrimSpace(strings.Join(lines[:min(n, len(lines))], "\n"))
}
