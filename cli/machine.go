package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"queuekeeper/config"
	"queuekeeper/supervisor"
)

// warnMachine tells what the file asks for and this machine will hardly give, as far as it can be seen without
// starting anything.
func (p *program) warnMachine(file config.File) {
	for _, w := range file.Workers {
		if w.MemoryLimit > 0 && runtime.GOOS != "linux" {
			p.lines("warning: ", fmt.Sprintf("queue %s: memory_limit holds on Linux only", w.Queue))
		}
		for _, reason := range userWarnings(w) {
			p.lines("warning: ", fmt.Sprintf("queue %s: %s", w.Queue, reason))
		}
	}
	need := neededFiles(file)
	if most, err := limit(unix.RLIMIT_NOFILE); err == nil && need > most {
		p.lines("warning: ", fmt.Sprintf("%d workers need %d open files; the limit (ulimit -n) is %d", len(file.Workers), need, most))
	}
	need = neededProcesses(file)
	if most, err := limit(unix.RLIMIT_NPROC); err == nil && need > most {
		p.lines("warning: ", fmt.Sprintf("the workers of one user need %d processes and threads; the limit (ulimit -u) is %d", need, most))
	}
}

func limit(resource int) (uint64, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(resource, &l)
	return l.Cur, err
}

// neededFiles is how many files the supervisor has open: pipes and a handle for each child, and some of its own.
func neededFiles(file config.File) uint64 { return uint64(4*len(file.Workers) + 32) }

// neededProcesses is how many processes and threads, as the system counts them, the user needs who needs most. It
// counts none of root's.
func neededProcesses(file config.File) (most uint64) {
	const threads = 8 // of a child
	need := map[string]uint64{}
	for _, w := range file.Workers {
		if w.User != "" || os.Geteuid() != 0 {
			need[w.User] += uint64(threads + w.Concurrency)
			most = max(most, need[w.User])
		}
	}
	return most
}

// userWarnings tells why a worker's child cannot be started as the user it asks for, or cannot do its work then.
func userWarnings(w config.Worker) (warnings []string) {
	if w.User == "" {
		return nil
	}
	who, err := supervisor.Identify(w.User)
	switch {
	case err != nil:
		return []string{fmt.Sprintf("its child cannot be started: %v", err)}
	case int(who.UID) == os.Geteuid():
		return nil
	case !maySetUser():
		return []string{fmt.Sprintf("its child cannot be started as user %s: only root can do that", w.User)}
	}
	add := func(format, path string, err error) {
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("user %s cannot "+format+": %v", w.User, path, err))
		}
	}
	if self, err := os.Executable(); err == nil {
		add("start this program, %s", self, mayStartUs(who, self))
	}
	add("enter the folder of the file, %s", w.Dir, mayEnter(who, w.Dir))
	for _, program := range programs(w) {
		add("start the command %s", program, mayFind(who, program, w.Dir))
	}
	return warnings
}

// mayStartUs is mayStart for this program. On Linux it starts itself by /proc, whatever folder it is in.
func mayStartUs(who supervisor.Identity, self string) error {
	if runtime.GOOS == "linux" {
		return allows(who, self)
	}
	return mayStart(who, self)
}

// mayFind tells what keeps a user from the program of a command, in dir or in PATH. Where there is none, that is told
// elsewhere.
func mayFind(who supervisor.Identity, program, dir string) (reason error) {
	folders := filepath.SplitList(os.Getenv("PATH"))
	switch {
	case filepath.IsAbs(program):
		folders = []string{""}
	case strings.Contains(program, "/"):
		folders = []string{dir}
	}
	for _, folder := range folders {
		err := mayStart(who, filepath.Join(folder, program))
		if err == nil {
			return nil
		}
		if reason == nil && !errors.Is(err, fs.ErrNotExist) {
			reason = err
		}
	}
	return reason
}

// mayStart tells what keeps a user from a program.
func mayStart(who supervisor.Identity, path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if err := mayEnter(who, filepath.Dir(path)); err != nil {
		return err
	}
	return allows(who, path)
}

// mayEnter tells what keeps a user from a folder, or from one that it is in.
func mayEnter(who supervisor.Identity, dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	for err == nil {
		if err = allows(who, dir); dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return err
}

// allows tells whether the mode of a file lets a user execute it, or of a folder, enter it.
func allows(who supervisor.Identity, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	execute := fs.FileMode(0o001)
	switch {
	case who.UID == 0:
		return nil
	case owner.Uid == who.UID:
		execute = 0o100
	case owner.Gid == who.GID, slices.Contains(who.Groups, owner.Gid):
		execute = 0o010
	}
	if info.Mode()&execute == 0 {
		return fmt.Errorf("the mode of %s is %v", path, info.Mode())
	}
	return nil
}

// programs are those of all commands of a worker, each once.
func programs(w config.Worker) (all []string) {
	add := func(command []string) {
		if len(command) > 0 && !slices.Contains(all, command[0]) {
			all = append(all, command[0])
		}
	}
	add(w.Command)
	for _, job := range w.Job {
		add(job.Command)
	}
	slices.Sort(all)
	return all
}
