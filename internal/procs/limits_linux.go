package procs

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LimitMemory lets this process, a Go program, allocate so many bytes more than it has now. At nine tenths of that the
// garbage collector does all it can; if that is not enough the Go runtime ends the process, with exit status 2 and a
// fatal error (see OutOfMemory). What it starts inherits the limit.
func LimitMemory(bytes int64) error {
	has, err := data()
	if err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	if err := LimitData(has + bytes); err != nil {
		return err
	}
	soft := bytes / 10 * 9
	if debug.SetMemoryLimit(-1) > soft { // a lower GOMEMLIMIT stays
		debug.SetMemoryLimit(soft)
	}
	return nil
}

// data is what of this process counts for RLIMIT_DATA, in bytes.
func data() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "\nVmData:")
	size, _, _ := strings.Cut(after, " kB\n")
	kb, err := strconv.ParseInt(strings.TrimSpace(size), 10, 64)
	if err != nil {
		return 0, errors.New("find VmData in /proc/self/status")
	}
	return kb << 10, nil
}

// Nice raises the nice value of this process, and so of what it starts, to n. One that is higher stays. The leader of a
// session raises that of the session too: where the kernel groups processes by session (autogroup), the values
// within two sessions say nothing to each other.
func Nice(n int) error {
	if n <= 0 {
		return nil
	}
	// The value is each thread's own and goes to the threads it starts: once all that are there have it, a new one has.
	for {
		lower, err := niceThreads(n)
		if err != nil {
			return fmt.Errorf("set nice value %d: %w", n, err)
		}
		if lower == 0 {
			break
		}
	}
	if sid, _ := session(os.Getpid()); sid == os.Getpid() {
		niceSession(n)
	}
	return nil
}

// niceThreads raises the threads that have a lower value than n, and says how many there were.
func niceThreads(n int) (lower int, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			return 0, err
		}
		kernels, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if err == nil && 20-kernels < n { // the system call itself has no negative values
			lower++
			err = unix.Setpriority(unix.PRIO_PROCESS, tid, n)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return 0, err
		}
	}
	return lower, nil
}

// niceSession raises the value of our session's group, if there is such a thing. Without the right to do more, all
// processes of the machine together may do it ten times a second.
func niceSession(n int) {
	const path = "/proc/self/autogroup"
	text, err := os.ReadFile(path)
	var now int
	if _, after, found := strings.Cut(string(text), " nice "); found {
		now, err = strconv.Atoi(strings.TrimSpace(after))
	}
	if err != nil || now >= n {
		return
	}
	for range 30 {
		if err := os.WriteFile(path, []byte(strconv.Itoa(n)), 0); !errors.Is(err, unix.EAGAIN) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
