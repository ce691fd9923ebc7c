package refusal

import (
	"net/http"
	"strings"
	"time"
)

// retryNames are the headers that say when to call again, the most trusted first.
var retryNames = []struct {
	name  string
	unit  time.Duration // of a plain number
	alone bool          // with a status of 4xx or 5xx it is a refusal by itself
}{
	{"Retry-After", time.Second, true},
	{"Retry-After-Ms", time.Millisecond, true},
	{"X-RateLimit-Retry-After", time.Second, false}, // some send it with every answer
}

func retryHeaders(header http.Header, clock time.Time) (all []named) {
	for _, h := range retryNames {
		if n, ok := headerTime(header, h.name, h.unit, clock); ok {
			n.retry = true
			all = append(all, n)
		}
	}
	return all
}

// saysRetry reports whether a header that is a refusal by itself can be read.
func saysRetry(header http.Header, clock time.Time) bool {
	for _, h := range retryNames {
		if _, ok := headerTime(header, h.name, h.unit, clock); ok && h.alone {
			return true
		}
	}
	return false
}

// counterNames are the headers that say how many calls are left, each with those that say until when, of which the
// first that can be read counts. Without any, a count of 0 names no time.
var counterNames = []struct {
	left   string
	resets []string
	unit   time.Duration // of a plain number in resets
	daily  bool
}{
	{left: "X-RateLimit-Remaining", resets: []string{"X-RateLimit-Reset-After", "X-RateLimit-Reset"}, unit: time.Second},
	{left: "RateLimit-Remaining", resets: []string{"RateLimit-Reset"}, unit: time.Second},
	{left: "X-Rate-Limit-Remaining", resets: []string{"X-Rate-Limit-Reset"}, unit: time.Millisecond},
	{left: "X-RateLimit-Remaining-Requests", resets: []string{"X-RateLimit-Reset-Requests"}, unit: time.Second},
	{left: "X-RateLimit-Remaining-Tokens", resets: []string{"X-RateLimit-Reset-Tokens"}, unit: time.Second},
	{left: "Anthropic-RateLimit-Requests-Remaining", resets: []string{"Anthropic-RateLimit-Requests-Reset"}, unit: time.Second},
	{left: "Anthropic-RateLimit-Tokens-Remaining", resets: []string{"Anthropic-RateLimit-Tokens-Reset"}, unit: time.Second},
	{left: "Anthropic-RateLimit-Input-Tokens-Remaining", resets: []string{"Anthropic-RateLimit-Input-Tokens-Reset"}, unit: time.Second},
	{left: "Anthropic-RateLimit-Output-Tokens-Remaining", resets: []string{"Anthropic-RateLimit-Output-Tokens-Reset"}, unit: time.Second},
	{left: "X-RateLimit-Remaining-Minute"},
	{left: "X-HubSpot-RateLimit-Remaining"},
	{left: "X-HubSpot-RateLimit-Secondly-Remaining"},
	{left: "X-HubSpot-RateLimit-Daily-Remaining", daily: true},
}

// counter is a count of calls that an answer tells.
type counter struct {
	name  string
	left  left
	reset named // zero if it names no time
	daily bool  // it counts the calls of a day
}

// left is how many calls are left of a count.
type left int

const (
	unknown left = iota // not said, or what cannot be read, like the -1 of Azure
	some
	none
)

func headerCounters(header http.Header, clock time.Time) (all []counter) {
	for _, h := range counterNames {
		c := counter{name: h.left, left: leftOf(header.Values(h.left)), daily: h.daily}
		for _, name := range h.resets {
			if reset, ok := headerTime(header, name, h.unit, clock); ok {
				c.reset = reset
				break
			}
		}
		all = append(all, c)
	}
	return all
}

// spent is the counter with nothing left that starts anew last.
func spent(counters []counter) (last counter, ok bool) {
	for _, c := range counters {
		if c.left == none && (!ok || c.reset.wait > last.reset.wait || last.reset.by == "") {
			last, ok = c, true
		}
	}
	return last, ok
}

// resets is what the counters say of when a refused call may be repeated. Where calls are left, the refusal has
// another reason, and its end is not that of the count. Where nothing says how many are left, a time after now is
// believed.
func resets(counters []counter) []named {
	if c, ok := spent(counters); ok {
		if c.reset.by == "" {
			return nil
		}
		return []named{c.reset}
	}
	var last named
	for _, c := range counters {
		if c.left == some {
			return nil
		}
		if c.reset.wait > last.wait {
			last = c.reset
		}
	}
	if last.wait <= 0 {
		return nil
	}
	return []named{last}
}

// headerTime is the latest time that the values of a header name.
func headerTime(header http.Header, name string, unit time.Duration, clock time.Time) (named, bool) {
	wait, text, ok := latest(header.Values(name), unit, clock)
	if !ok {
		return named{}, false
	}
	return named{wait: wait, by: name + ": " + text}, true
}

// leftOf is the smallest count among the values of a header.
func leftOf(values []string) left {
	found := unknown
	for _, value := range readable(values) {
		for piece := range strings.SplitSeq(value, ",") {
			n, ok := parseDecimal(strings.TrimSpace(piece))
			switch {
			case ok && n.zero():
				return none
			case ok:
				found = some
			}
		}
	}
	return found
}
