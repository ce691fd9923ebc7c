package procs

// SetName does nothing here: a process keeps the name of its file.
func SetName(string) {}

// Replaced is not known here.
func Replaced() bool { return false }
