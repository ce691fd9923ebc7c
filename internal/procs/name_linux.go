package procs

import (
	"os"
	"strings"
)

// SetName sets what ps and pkill call this process. A process started by way of /proc/self/exe is called exe.
func SetName(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // it only shows
}

// Replaced reports whether the file of the running program has been replaced or removed.
func Replaced() bool {
	path, err := os.Readlink("/proc/self/exe")
	return err == nil && strings.HasSuffix(path, " (deleted)")
}
