package procs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// LimitMemory is an error here: nothing bounds the memory of a process that it has set on itself.
func LimitMemory(int64) error { return errors.New("limit memory: works on Linux only") }

// Nice raises the nice value of this process, and so of what it starts, to n. One that is higher stays.
func Nice(n int) error {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil && now < n {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, n)
	}
	if err != nil {
		return fmt.Errorf("set nice value %d: %w", n, err)
	}
	return nil
}
