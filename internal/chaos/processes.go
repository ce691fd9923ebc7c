package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// process is one that runs for a supervisor of ours: itself, a child of it, a command. Its handle stays with it, so
// that no signal reaches whoever gets its number later.
type process struct {
	*os.Process
	of    int    // the supervisor's number in the round
	queue string // of a child; "": it is something else
}

// processes finds those of the whole round or, by its place, of one supervisor. It needs Linux's /proc.
func processes(place string) (all []process, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !within(mark(pid), place) {
			continue
		}
		handle, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		at := mark(pid) // again: it is the handle's now
		if !within(at, place) {
			_ = handle.Release()
			continue
		}
		p := process{Process: handle, queue: childOf(pid)}
		if _, err := fmt.Sscanf(filepath.Base(at), supervisorForm, &p.of); err != nil {
			return nil, fmt.Errorf("process %d: mark %q: %w", pid, at, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func within(at, place string) bool { return at == place || strings.HasPrefix(at, place+"/") }

// mark is the place a process was started with; "": none, or it has ended.
func mark(pid int) string {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if place, ours := bytes.CutPrefix(entry, []byte(siteVariable+"=")); ours {
			return string(place)
		}
	}
	return ""
}

// childOf is the queue of a child.
func childOf(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if words := strings.Split(string(line), "\x00"); len(words) > 2 && words[1] == "child" {
		return words[2]
	}
	return ""
}

// send sends a signal, and reports whether there was anybody to get it.
func (p process) send(sig syscall.Signal) bool { return p.Signal(sig) == nil }
