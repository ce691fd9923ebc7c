package handler

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"

	"queuekeeper/internal/procs"
)

// A command with a memory limit is started by way of this program: nothing in os/exec sets a limit between fork and
// exec, and set afterwards it would come too late for what the command has started by then.

// refusalFD is where the process that is to become a command writes why it cannot: the number of the error.
const refusalFD = 3

// startLimited starts cmd with a limit, in bytes, of its memory. The process is that of the command from the start;
// that it could not become the command is told by refusal, once it has ended.
func startLimited(cmd *exec.Cmd, bytes int64) (refusal func() error, err error) {
	self, err := self()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	path := cmd.Path
	cmd.Args = append([]string{"queuekeeper: limit", "limit", strconv.FormatInt(bytes, 10), path}, cmd.Args...)
	cmd.Path = self
	cmd.ExtraFiles = []*os.File{refusalFD - 3: write}
	if err := cmd.Start(); err != nil {
		_ = read.Close()
		if refused, ok := errors.AsType[*fs.PathError](err); ok && refused.Path == self {
			refused.Path = path // what is missing may be the folder of the command
		}
		return nil, err
	}
	return func() error {
		defer read.Close()
		text, _ := io.ReadAll(read)
		number, err := strconv.Atoi(string(text))
		if err != nil { // nothing: the command's exec closed the pipe
			return nil
		}
		return &fs.PathError{Op: "fork/exec", Path: path, Err: syscall.Errno(number)} // as os/exec has it
	}, nil
}

// self is the running binary, even where its file was replaced or removed.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// Limit is what this program does when started with the argument "limit", before the args given here: a number of
// bytes, a path and the arguments of a command, its name first. It limits the memory of its own process and becomes
// that command. If it cannot it returns the status to exit with.
func Limit(args []string) int {
	syscall.CloseOnExec(refusalFD)
	err := becomeLimited(args)
	if number, ok := err.(syscall.Errno); ok { // of the exec itself, and nothing else
		refused := os.NewFile(refusalFD, "refusal")
		if _, err := fmt.Fprint(refused, int(number)); err == nil {
			return 1
		}
	}
	fmt.Fprintln(os.Stderr, "limit:", err)
	return 1
}

func becomeLimited(args []string) error {
	if len(args) < 3 {
		return errors.New("only a child starts a command this way; use `queuekeeper run`")
	}
	bytes, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return fmt.Errorf("read limit: %w", err)
	}
	env := os.Environ()
	makeRoom(args, env)
	if err := procs.LimitData(bytes); err != nil {
		return err
	}
	return syscall.Exec(args[1], args[2:], env)
}

// makeRoom has memory ready for the copies of all texts that an exec makes: this process may have more than the limit
// already, and will then be given no more.
func makeRoom(texts ...[]string) {
	size := 1 << 20
	for _, list := range texts {
		for _, text := range list {
			size += 2 * (len(text) + 64)
		}
	}
	runtime.KeepAlive(make([]byte, size))
	runtime.GC()
	debug.SetGCPercent(-1)
}
