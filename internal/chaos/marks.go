package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"queuekeeper/jobs"
)

// What a handler marks.
const (
	startMark  = "start"
	doneMark   = "done"
	failMark   = "failed"
	refuseMark = "refused"
	cutMark    = "cut"   // its context ended before it did
	crowdMark  = "crowd" // more of its queue ran than may
)

// siteVariable marks every process of a supervisor, and it itself, with the supervisor's place in the round's folder.
const siteVariable = "QUEUEKEEPER_CHAOS"

// roundFolder is where a handler leaves its marks.
func roundFolder() string { return filepath.Dir(os.Getenv(siteVariable)) }

const marksFile = "marks"

// marker writes the marks of one attempt. A mark is one write, so that those of many processes do not mix.
type marker struct{ job jobs.Job }

func (m marker) mark(what string) error {
	now := time.Now()
	f, err := os.OpenFile(filepath.Join(roundFolder(), marksFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%d %d %s %d\n", m.job.ID, m.job.Attempt, what, now.UnixNano())
	return err
}

// attempt is what the marks tell of one start of a job.
type attempt struct {
	number int
	starts []time.Time // more than one would be a fault
	end    string      // the last mark but starts; "": it was ended
	crowd  bool
}

func (a attempt) String() string {
	return fmt.Sprintf("attempt %d (started %s, end %q)", a.number, a.starts[0].UTC().Format(clock), a.end)
}

// clock is how times of day are told, as in the logs.
const clock = "15:04:05.000"

// readMarks returns the attempts of each job that were started, the first first.
func readMarks(path string) (map[int64][]attempt, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // none: nothing ran
		return nil, err
	}
	ran := map[int64][]attempt{}
	for line := range strings.Lines(string(text)) {
		var id, ns int64
		var number int
		var what string
		if _, err := fmt.Sscanf(line, "%d %d %s %d\n", &id, &number, &what, &ns); err != nil {
			return nil, fmt.Errorf("read mark %q: %w", line, err)
		}
		ran[id] = withMark(ran[id], number, what, time.Unix(0, ns))
	}
	return ran, nil
}

// withMark adds a mark. Attempts of one job can overlap only where something is wrong; their numbers tell them apart.
func withMark(attempts []attempt, number int, what string, at time.Time) []attempt {
	i := len(attempts) - 1
	for i >= 0 && attempts[i].number != number {
		i--
	}
	if i < 0 {
		attempts = append(attempts, attempt{number: number})
		i = len(attempts) - 1
	}
	switch what {
	case startMark:
		attempts[i].starts = append(attempts[i].starts, at)
	case crowdMark:
		attempts[i].crowd = true
	default:
		attempts[i].end = what
	}
	return attempts
}
