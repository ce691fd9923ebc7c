package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReapOrphans collects the children of this process that have ended and are not ours, and reports how many. It is
// for PID 1 of a container, which inherits the orphans of all others: those it does not collect stay zombies and
// fill the table of processes. The error says that /proc cannot be read.
//
// No exit status of our own is lost if ours is true of every process started here until its Wait has returned,
// and if nothing is started here before ReapOrphans returns. One that ends meanwhile may be left for the next call.
func ReapOrphans(ours func(pid int) bool) (reaped int, err error) {
	pids, err := children()
	if err != nil {
		return 0, fmt.Errorf("list own children: %w", err)
	}
	for _, pid := range pids {
		if !ours(pid) && collect(pid) {
			reaped++
		}
	}
	return reaped, nil
}

// collect reports whether the child pid has ended and was collected. It does not wait. It asks for this one alone:
// to ask for any child that has ended would take the exit status from whoever waits for it.
func collect(pid int) bool {
	got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil) // the only error: it is no child any more
	return got == pid
}

// children lists the children of this process, living and dead. Each of our threads has a list of its own;
// kernels built without them leave only the look at all processes.
func children() ([]int, error) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // errs for a bad pattern only
	if len(lists) == 0 {
		return childrenOf(os.Getpid())
	}
	var pids []int
	for _, list := range lists {
		text, _ := os.ReadFile(list) // no text: the thread has ended, and another has its children
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 { // 0 would have us wait for a group
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// childrenOf lists the children of the process parent by looking at every process there is.
func childrenOf(parent int) ([]int, error) {
	pids, err := all()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range pids {
		fields, _ := stat(pid)
		if len(fields) > statParent && fields[statParent] == strconv.Itoa(parent) {
			found = append(found, pid)
		}
	}
	return found, nil
}

const statParent = 4 - 3 // like those of procs_linux.go
