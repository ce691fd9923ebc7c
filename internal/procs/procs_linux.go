package procs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// WaitNoReap waits for the child pid of this process to end and leaves it unreaped: its pid, and the group
// and session of that number, cannot be reused until someone waits for it.
func WaitNoReap(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
		return nil
	}
}

// StartTime is when the process pid started, in the kernel's ticks since boot: with the boot and the pid
// namespace it tells a process from a later one that got the same pid. False: no such process lives; one
// that has ended and is not reaped does not.
func StartTime(pid int) (int64, bool) {
	fields, live := stat(pid)
	if !live {
		return 0, false
	}
	ticks, err := strconv.ParseInt(fields[statStart], 10, 64)
	return ticks, err == nil
}

// BootID names this boot of the machine, the same in all its containers. "": unknown.
func BootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// PIDNamespace names the space in which our pids mean something: two containers differ. "": unknown.
func PIDNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// BootClock is the time since boot. It runs on while the machine is suspended, and nobody can set it.
func BootClock() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(fmt.Sprintf("read boot clock: %v", err)) // since Linux 2.6.39 it has no way to fail
	}
	return time.Duration(now.Nano())
}

// dead reports whether pid is a process that has ended and is not reaped.
func dead(pid int) bool {
	fields, live := stat(pid)
	return !live && len(fields) > statState && (fields[statState] == "Z" || fields[statState] == "X")
}

// hasEnv reports whether entry was in the environment the process was started with.
func hasEnv(pid int, entry string) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, text...), []byte("\x00"+entry+"\x00"))
}

// session is the session of a process, and whether the process is alive.
func session(pid int) (sid int, live bool) {
	fields, live := stat(pid)
	if !live {
		return 0, false
	}
	sid, err := strconv.Atoi(fields[statSession])
	return sid, err == nil
}

// Where proc(5)'s fields 3, 6 and 22 of /proc/PID/stat are among those stat returns.
const (
	statState   = 0
	statSession = 6 - 3
	statStart   = 22 - 3
)

// stat returns the fields of /proc/PID/stat from the third on, and whether the process is alive. The second,
// the command's name, may hold spaces and parentheses, but nothing after it does.
func stat(pid int) (fields []string, live bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, false
	}
	fields = strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= statStart {
		return nil, false
	}
	dead := fields[statState] == "Z" || fields[statState] == "X"
	return fields, !dead
}

// all lists the pids there are.
func all() ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
