// Package procs is what the project needs of the operating system's processes beyond os/exec: ending a whole
// session, noticing an end without reaping it, and telling one life of a process or machine from the next.
// Linux first; macOS for development.
package procs

import (
	"errors"
	"fmt"
	"golang.org/x/sys/unix"
	"os"
	"strconv"
	"syscall"
	"time"
)

// CloseOnExec keeps every descriptor above the standard three from the programs that are started later, but
// for those handed to them on purpose. Go opens its own that way; what this process was started with (the
// pipes of a child, whatever a shell left open) it would pass on.
func CloseOnExec() error {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("list open descriptors: %w", err)
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd) // the one that listed them is closed by now: no harm
		}
	}
	return nil
}

// killPatience is how long KillSession tries: a process that outlives SIGKILL hangs in the kernel or is not
// ours to kill, and waiting longer changes neither.
const killPatience = 5 * time.Second

// Gone reports whether the process that had pid and the start time is known to be no more. That it cannot be looked
// at, as under hidepid, proves nothing.
func Gone(pid int, started int64) bool {
	if pid <= 0 {
		return false
	}
	if now, alive := StartTime(pid); alive {
		return now != started
	}
	return dead(pid) || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// KillSession kills every process of the session sid and returns once a look at all processes finds none of
// them alive. A leader that has died and is not reaped yet is left as it is, and is what keeps sid from being
// reused: call KillSession before reaping it. A process that left the session (setsid) is not found. The error
// says that some member lives on after five seconds, or that sid is nothing to be killed: our own session or
// init's.
func KillSession(sid int) error {
	if own, _ := session(os.Getpid()); sid <= 1 || sid == own {
		return fmt.Errorf("kill session %d: not a session of a child", sid)
	}
	return killAll(sid, everyone)
}

func everyone(int) bool { return true }

// KillRest kills every other process of our own session, like KillSession. It is for a child, which leads its
// session: anywhere else the rest of the session is none of ours.
func KillRest() error {
	sid, _ := session(os.Getpid())
	if sid != os.Getpid() {
		return fmt.Errorf("kill the rest of session %d: process %d does not lead it", sid, os.Getpid())
	}
	return killAll(sid, everyone)
}

// KillMarked kills the processes of the session sid that have mark, NAME=value, in their environment. It is for a
// session whose leader is gone, and with it the proof that its number was not given to strangers since.
func KillMarked(sid int, mark string) error {
	return killAll(sid, func(pid int) bool { return hasEnv(pid, mark) })
}

func killAll(sid int, chosen func(pid int) bool) error {
	pause := time.Millisecond
	for end := time.Now().Add(killPatience); ; pause *= 2 {
		alive, err := killMembers(sid, chosen)
		if err != nil {
			return fmt.Errorf("kill session %d: %w", sid, err)
		}
		if alive == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("kill session %d: %d processes still alive after %v", sid, alive, killPatience)
		}
		time.Sleep(min(pause, 100*time.Millisecond))
	}
}

// killMembers sends SIGKILL to the living members of the session but this process, and reports how many it found.
func killMembers(sid int, chosen func(pid int) bool) (alive int, err error) {
	pids, err := all()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if s, live := session(pid); !live || s != sid || pid == os.Getpid() || !chosen(pid) {
			continue
		}
		// The pid may have been given to another process since the look. A handle stays with one process, so
		// take it first and look again.
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if s, live := session(pid); live && s == sid {
			alive++
			_ = process.Kill() // whether it worked, the next look tells
		}
		_ = process.Release()
	}
	return alive, nil
}
