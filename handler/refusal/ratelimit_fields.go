package refusal

import (
	"strings"
	"time"
)

// rateLimitCounters reads the field RateLimit of the IETF's drafts, told apart by their shape:
//
//	limit=100, remaining=50, reset=5     draft 07: one dictionary
//	default;r=50;t=5                     between the drafts: a list of names
//	"burst";r=50;t=5, "daily";r=0        drafts 08 to 10: a list of names in quotes; t may be missing
//
// Drafts 01 to 06 have a header for each number, like so many others: see counterNames. Parameters of no interest are
// passed over; a field with a quote that does not end says nothing.
func rateLimitCounters(lines []string, clock time.Time) (all []counter) {
	items, ok := splitOutside(strings.Join(readable(lines), ","), ',')
	if !ok {
		return nil
	}
	var remaining, reset []string // of the dictionary
	for _, item := range items {
		var r, t []string
		parts, _ := splitOutside(item, ';')
		for _, part := range parts {
			key, value, _ := strings.Cut(part, "=")
			switch value = strings.TrimSpace(value); strings.ToLower(strings.TrimSpace(key)) {
			case "remaining":
				remaining = append(remaining, value)
			case "reset":
				reset = append(reset, value)
			case "r":
				r = append(r, value)
			case "t":
				t = append(t, value)
			}
		}
		if r != nil {
			all = append(all, rateLimitCounter("RateLimit r", "RateLimit t", r, t, clock))
		}
	}
	if remaining != nil || reset != nil {
		all = append(all, rateLimitCounter("RateLimit remaining", "RateLimit reset", remaining, reset, clock))
	}
	return all
}

func rateLimitCounter(leftName, resetName string, remaining, reset []string, clock time.Time) counter {
	c := counter{name: leftName, left: leftOf(remaining)}
	if wait, text, ok := latest(reset, time.Second, clock); ok {
		c.reset = named{wait: wait, by: resetName + ": " + text}
	}
	return c
}

// splitOutside splits text at each separator outside quotes; false if a quote does not end.
func splitOutside(text string, separator byte) (parts []string, ok bool) {
	begin, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == separator && !quoted:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:]), !quoted
}
