package procs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// DropAmbient keeps this process's ambient capabilities from the programs it starts; itself it keeps what it may. They
// outlive an exec and a change from one user to another: with CAP_SETUID among them each job could become root.
func DropAmbient() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("read ambient capabilities: %w", err)
	}
	_, after, _ := strings.Cut(string(status), "\nCapAmb:")
	line, _, _ := strings.Cut(after, "\n")
	if strings.Trim(line, "\t 0") == "" {
		return nil
	}
	// A capability is each thread's own, and any of them may start a program.
	_, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	if errno == syscall.ENOTSUP {
		return errors.New("drop ambient capabilities: needs a program built with CGO_ENABLED=0")
	}
	if errno != 0 {
		return fmt.Errorf("drop ambient capabilities: %w", errno)
	}
	return nil
}
