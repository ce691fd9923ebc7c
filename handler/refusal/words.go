package refusal

import (
	"regexp"
	"strings"
	"time"

	"queuekeeper/jobs"
)

// limitWords are what bodies call a refusal: the only thing that tells a 403 for too many calls from one for a missing
// right, and a refusal inside a 200 from an answer. Those without a space are whole words, in any case.
var limitWords = []struct {
	word  string
	scope jobs.Scope
	daily bool
}{
	{word: "secondary rate limit"}, // GitHub
	{word: "rate limit exceeded"},
	{word: "rate limit already exceeded"},
	{word: "rateLimitExceeded", scope: jobs.ScopeQueue}, // Google: the project's
	{word: "userRateLimitExceeded", scope: jobs.ScopeLane},
	{word: "quotaExceeded", daily: true},
	{word: "dailyLimitExceeded", daily: true},
	{word: "REQUEST_LIMIT_EXCEEDED", daily: true}, // Salesforce, but see concurrent
	{word: "RATE_LIMITED"},
	{word: "THROTTLED"},
}

// concurrent stands in Salesforce's body where the limit is that of calls at the same time and not that of the day.
const concurrent = "ConcurrentRequests"

// hopelessWords are what bodies of a 429 say if waiting does not cure it.
var hopelessWords = []string{
	"insufficient_quota", "credit_balance_exhausted", "enforced_spend_limit_reached", "abnormal-usage-detected",
}

// has reports whether the body has a word. A word without a space must stand alone: Google's storageQuotaExceeded is no
// limit of calls.
func (b body) has(word string) bool {
	word = strings.ToLower(word)
	if strings.Contains(word, " ") {
		return strings.Contains(b.lower, word)
	}
	for from := 0; ; {
		i := strings.Index(b.lower[from:], word)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(word)
		if (begin == 0 || !inWord(b.lower[begin-1])) && (end == len(b.lower) || !inWord(b.lower[end])) {
			return true
		}
		from = begin + 1
	}
}

func inWord(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }

func (b body) limitWord() string {
	for _, w := range limitWords {
		if b.has(w.word) {
			return w.word
		}
	}
	return ""
}

func (b body) hopelessWord() string {
	for _, word := range hopelessWords {
		if b.has(word) {
			return word
		}
	}
	return ""
}

// dailyWord is by which words of the body the limit is that of a day.
func (b body) dailyWord() string {
	if b.text("policyName") == "DAILY" {
		return "policyName in the body: DAILY"
	}
	violated, _ := at(b.root, "violated-policies").([]any)
	for _, policy := range violated {
		if name, _ := policy.(string); strings.EqualFold(name, "daily") || strings.EqualFold(name, "day") {
			return "violated-policies in the body: " + name
		}
	}
	for _, w := range limitWords {
		if w.daily && b.has(w.word) && !b.has(concurrent) {
			return w.word + " in the body"
		}
	}
	return ""
}

// refusesInside is the word by which the body of a 2xx is a refusal, "" if it is none. It must stand where GraphQL and
// Slack put the reason why they did nothing. With data, or an error that has a path, something may have been done.
func (b body) refusesInside() string {
	if at(b.root, "ok") == false {
		if word := b.text("error"); word == "ratelimited" || word == "rate_limited" {
			return word
		}
	}
	errs, _ := at(b.root, "errors").([]any)
	if at(b.root, "data") != nil {
		return ""
	}
	found := ""
	for _, e := range errs {
		if at(e, "path") != nil {
			return ""
		}
		if found == "" {
			found = errorWord(e)
		}
	}
	return found
}

// errorWord is the limit word that an error of GraphQL has as its type or code, or in its message.
func errorWord(e any) string {
	one := body{root: e}
	codes := []string{one.text("type"), one.text("code"), one.text("extensions", "code"), one.text("message")}
	message := body{lower: strings.ToLower(one.text("message"))}
	for _, w := range limitWords {
		for _, code := range codes {
			if strings.EqualFold(code, w.word) {
				return w.word
			}
		}
		if strings.Contains(w.word, " ") && message.has(w.word) {
			return w.word
		}
	}
	return ""
}

// prose is how texts for people say when to call again: "try again in 41.724s", "retry after 7".
var prose = regexp.MustCompile(`(?:try again|retry) (?:in|after) ([0-9][^\s"'<>()\\,;]*)(?: (milli|sec|min|hour|day))?`)

var proseUnits = map[string]time.Duration{
	"milli": time.Millisecond, "sec": time.Second, "min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}

// proseTimes is the time in the text of a body: the last resort.
func (b body) proseTimes(clock time.Time) []named {
	match := prose.FindStringSubmatch(b.lower)
	if match == nil {
		return nil
	}
	unit, ok := proseUnits[match[2]]
	if !ok {
		unit = time.Second
	}
	text := strings.TrimRight(match[1], ".!?")
	for _, text := range []string{text, strings.ToUpper(text)} { // a date has a T and a Z
		if wait, ok := waitFor(text, unit, clock); ok {
			return []named{{wait: wait, by: match[0] + " in the body"}}
		}
	}
	return nil
}
