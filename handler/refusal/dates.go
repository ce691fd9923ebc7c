package refusal

import (
	"strings"
	"time"
)

// shortYear is the date of RFC 850, whose year has two digits.
const shortYear = "Monday, 2-Jan-06 15:04:05 GMT"

// layouts are the dates that are read: the three of HTTP, with GMT as text so that no zone of this machine matters,
// then what others write.
var layouts = []string{
	"Mon, 2 Jan 2006 15:04:05 GMT",
	shortYear,
	time.ANSIC,
	time.RFC1123Z,
	time.RFC3339,
	time.DateTime, // without a zone it is UTC
}

// parseDate reads a date. A year of two digits is the one nearest to clock's.
func parseDate(text string, clock time.Time) (time.Time, bool) {
	if len(text) > maxTime {
		return time.Time{}, false
	}
	for _, layout := range layouts {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if layout == shortYear {
			t = inCentury(t, clock)
		}
		return t, true
	}
	return time.Time{}, false
}

func inCentury(t, clock time.Time) time.Time {
	switch {
	case t.After(clock.AddDate(50, 0, 0)):
		return t.AddDate(-100, 0, 0)
	case t.Before(clock.AddDate(-50, 0, 0)):
		return t.AddDate(100, 0, 0)
	}
	return t
}

// maxHeader is how many bytes of a header are read, over all the lines it comes in.
const maxHeader = 4096

// readable is as many of the lines of a header, from the first on, as maxHeader has room for.
func readable(lines []string) []string {
	size := 0
	for i, line := range lines {
		if size += len(line); size > maxHeader {
			return lines[:i]
		}
	}
	return lines
}

// latest is the longest wait that the lines of a header name, and how they write it. A line may have several times, with
// commas between them and in them.
func latest(lines []string, unit time.Duration, clock time.Time) (longest time.Duration, text string, ok bool) {
	for _, line := range readable(lines) {
		pieces := strings.Split(line, ",")
		for i := 0; i < len(pieces); i++ {
			piece := strings.TrimSpace(pieces[i])
			wait, valid := waitFor(piece, unit, clock)
			if !valid && i+1 < len(pieces) { // the first half of a date, perhaps
				piece = strings.TrimSpace(pieces[i] + "," + pieces[i+1])
				if wait, valid = waitFor(piece, unit, clock); valid {
					i++
				}
			}
			if valid && (!ok || wait > longest) {
				longest, text, ok = wait, piece, true
			}
		}
	}
	return longest, text, ok
}
