package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"queuekeeper/internal/wire"
)

// maxStatusLine is how long a status line may be, in bytes with its newline.
const maxStatusLine = 16 << 10

// report is a line from a child.
type report struct {
	from    *incarnation
	status  wire.Status
	garbage bool // its first line that is no status; more are only counted
}

// readStatus passes on what the child says until its pipe ends, and counts the lines that say nothing.
func (i *incarnation) readStatus(from io.Reader, reports chan<- report) (garbage int) {
	for status := range statuses(from) {
		if status.Is != "" {
			reports <- report{from: i, status: status}
			continue
		}
		if garbage == 0 {
			reports <- report{from: i, garbage: true}
		}
		garbage++
	}
	return garbage
}

// statuses reads a status per line until r ends or fails. What is no status, however long, comes as one that
// says nothing: reading never stops, for a child whose pipe is not read would hang in its next word.
func statuses(r io.Reader) iter.Seq[wire.Status] {
	return func(yield func(wire.Status) bool) {
		lines := bufio.NewReaderSize(r, maxStatusLine)
		for {
			line, err := lines.ReadSlice('\n')
			overlong := false
			for errors.Is(err, bufio.ErrBufferFull) {
				overlong = true
				_, err = lines.ReadSlice('\n')
			}
			var s wire.Status
			if overlong || json.Unmarshal(line, &s) != nil {
				s = wire.Status{}
			}
			if (len(line) > 0 && !yield(s)) || err != nil {
				return
			}
		}
	}
}
