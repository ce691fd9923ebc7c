package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a file.
type Fault struct {
	Path string // of the file, as given to Load
	Line int    // from 1; 0: no line is at fault, but the file
	Key  string // "lease", "worker.github.burst"; "": no key is at fault
	Text string // what it is, what it must be; never a secret
}

// String is the fault as people read it: path:line: key: text. Without a line and a key it is the text
// alone, which then names the file itself.
func (f Fault) String() string {
	switch {
	case f.Line == 0 && f.Key == "":
		return f.Text
	case f.Line == 0:
		return fmt.Sprintf("%s: %s: %s", f.Path, f.Key, f.Text)
	case f.Key == "":
		return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.Path, f.Line, f.Key, f.Text)
}

// in is the report of a fault that ends the reading of the file at path.
func (f *Fault) in(path string) Faults {
	f.Path = path
	return Faults{*f}
}

// Faults is every fault of a file, in the order of their lines. It is the error of Load.
type Faults []Fault

// Error has a line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// sort orders by line, then by key, so that the report does not depend on the order of a map.
func (f Faults) sort() {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Text, b.Text))
	})
}
