package procs

import (
	"fmt"
	"regexp"

	"golang.org/x/sys/unix"
)

// LimitData bounds, in bytes, the memory that this process and each that it starts may have to write to. It is
// RLIMIT_DATA, not RLIMIT_AS: that one counts address space too, of which a Go program reserves far more than it
// uses. A lower bound that is there already stays.
func LimitData(bytes int64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
		return fmt.Errorf("read limit of memory: %w", err)
	}
	limit := min(uint64(bytes), now.Cur, now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		return fmt.Errorf("limit memory to %d bytes: %w", limit, err)
	}
	return nil
}

// growing are the functions in which the Go runtime gives up when the system gives it no more memory.
var growing = regexp.MustCompile(`(?m)^runtime\.(sysMapOS|sysUsedOS|persistentalloc1?|\(\*mheap\)\.(grow|sysAlloc))\(`)

// OutOfMemory reports whether a Go program died of its limit, by what it wrote to debug.SetCrashOutput. The words "out of
// memory" are not there: of a fatal error of the runtime only the stack is.
func OutOfMemory(crash string) bool { return growing.MatchString(crash) }
