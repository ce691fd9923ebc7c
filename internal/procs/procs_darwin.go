package procs

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// WaitNoReap waits for the child pid of this process to end and leaves it unreaped: its pid, and the group
// and session of that number, cannot be reused until someone waits for it.
func WaitNoReap(pid int) error {
	// By kqueue: waitid returns here when the process is merely stopped (golang/go#19314).
	queue, err := unix.Kqueue()
	if err != nil {
		return fmt.Errorf("wait for process %d: %w", pid, err)
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)

	var exit unix.Kevent_t
	unix.SetKevent(&exit, pid, unix.EVFILT_PROC, unix.EV_ADD)
	exit.Fflags = unix.NOTE_EXIT
	changes, events := []unix.Kevent_t{exit}, make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(queue, changes, events, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ESRCH, n == 1 && events[0].Flags&unix.EV_ERROR != 0 && events[0].Data == int64(unix.ESRCH):
			return nil // it has ended already
		case err != nil:
			return fmt.Errorf("wait for process %d: %w", pid, err)
		case n == 1 && events[0].Flags&unix.EV_ERROR != 0:
			return fmt.Errorf("wait for process %d: %w", pid, unix.Errno(events[0].Data))
		case n == 1:
			return nil
		}
	}
}

// StartTime is when the process pid started, in microseconds of the wall clock: with the boot it tells a
// process from a later one that got the same pid. False: no such process lives; one that has ended and is
// not reaped does not.
func StartTime(pid int) (int64, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || info.Proc.P_stat == zombie {
		return 0, false
	}
	return info.Proc.P_starttime.Nano() / 1000, true
}

// BootID names this boot of the machine. "": unknown.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// PIDNamespace names the space in which our pids mean something: here there is one.
func PIDNamespace() string { return "pid" }

// BootClock is the time since boot. Nobody can set it.
func BootClock() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(fmt.Sprintf("read monotonic clock: %v", err)) // it has no way to fail
	}
	return time.Duration(now.Nano())
}

const zombie = 5 // SZOMB of sys/proc.h

// dead reports whether pid is a process that has ended and is not reaped.
func dead(pid int) bool {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(info.Proc.P_pid) == pid && info.Proc.P_stat == zombie
}

// hasEnv is not known here: nothing is proved to be ours.
func hasEnv(int, string) bool { return false }

// session is the session of a process, and whether the process is alive.
func session(pid int) (sid int, live bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || info.Proc.P_stat == zombie {
		return 0, false
	}
	sid, err = unix.Getsid(pid)
	return sid, err == nil
}

// all lists the pids there are.
func all() ([]int, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	pids := make([]int, len(infos))
	for i, info := range infos {
		pids[i] = int(info.Proc.P_pid)
	}
	return pids, nil
}
