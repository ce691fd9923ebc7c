package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// marks is in the folder of queues.toml, where commands run.
const marks = "marks"

// mark is the handler of every job: it appends a line that says which job ran, and when. A line is one write, so
// that those of many processes do not mix.
func mark(now time.Time) error {
	f, err := os.OpenFile(marks, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s %d\n", os.Getenv("JOB_ID"), now.UnixNano()); err != nil {
		return err
	}
	return f.Close()
}

// readMarks returns when each job ran, every time it did.
func readMarks(path string) (map[int64][]time.Time, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // none: nothing ran
		return nil, err
	}
	ran := map[int64][]time.Time{}
	for line := range strings.Lines(string(text)) {
		var id, ns int64
		if _, err := fmt.Sscanf(line, "%d %d\n", &id, &ns); err != nil {
			return nil, fmt.Errorf("read mark %q: %w", line, err)
		}
		ran[id] = append(ran[id], time.Unix(0, ns))
	}
	return ran, nil
}
