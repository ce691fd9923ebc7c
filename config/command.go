package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckCommands looks for the programs of w, of its jobs too, as they will be looked for at the start of a
// job by this process: in the folder of the file, in PATH, with this process's rights. It is a Faults with
// one for each program that is missing or cannot be executed, empty if there is none.
func (w Worker) CheckCommands() Faults {
	var faults Faults
	check := func(command []string, line int, key string) {
		if len(command) == 0 {
			return
		}
		if err := executable(w.Dir, command[0]); err != nil {
			faults = append(faults, Fault{
				Path: w.Path, Line: line, Key: workerTable + "." + w.Queue + "." + key,
				Text: fmt.Sprintf("%v, must be a program that can be executed", err),
			})
		}
	}
	check(w.Command, w.CommandLine, "command")
	for _, name := range slices.Sorted(maps.Keys(w.Job)) {
		check(w.Job[name].Command, w.Job[name].CommandLine, jobTable+"."+showKey(name)+".command")
	}
	faults.sort()
	return faults
}

// executable tells why a program cannot be started in dir. It names the program even where a variable was
// part of the path: every list of processes shows it too.
func executable(dir, program string) error {
	path := program
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		path = filepath.Join(dir, program)
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return fmt.Errorf("look for %s: %w", path, reason(err))
	}
	return checkScript(found)
}

// reason is what is left of err without the name and the system call around it.
func reason(err error) error {
	if lookup, ok := errors.AsType[*exec.Error](err); ok {
		err = lookup.Err
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err
}

// checkScript tells of scripts that the system refuses with reasons nobody understands: without a #! line
// ("exec format error"), or with one that ends in CRLF or names what is not there ("no such file or directory").
func checkScript(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil // executable but not readable is fine
	}
	defer f.Close()
	start, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	first, _, _ := bytes.Cut(start, []byte("\n"))
	switch {
	case !bytes.HasPrefix(first, []byte("#!")):
		if isText(start) {
			return fmt.Errorf("start %s: is a text without a #! line", path)
		}
		return nil
	case bytes.HasSuffix(first, []byte("\r")):
		return fmt.Errorf("start %s: has a #! line that ends in CRLF, must end in LF", path)
	}
	if interpreter := bytes.Fields(first[2:]); len(interpreter) > 0 {
		if _, err := os.Stat(string(interpreter[0])); err != nil {
			return fmt.Errorf("start %s: its #! line: look for %s: %w", path, interpreter[0], reason(err))
		}
	}
	return nil
}

// isText is false for the executables of any system: their first bytes have a NUL or are not UTF-8. A
// character that is cut off at the end does not count.
func isText(start []byte) bool {
	i := invalidUTF8(string(start))
	return bytes.IndexByte(start, 0) < 0 && (i < 0 || i > len(start)-utf8.UTFMax)
}
