package refusal

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"
)

// maxBody is how many bytes of a body are looked at.
const maxBody = 64 << 10

// body is what was read of the body of an answer.
type body struct {
	lower string // all of it, in lower case
	root  any    // nil if it is not JSON, or longer than maxBody
}

func newBody(text []byte) body {
	text = text[:min(len(text), maxBody)]
	b := body{lower: string(bytes.ToLower(text))}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var root any
	if decoder.Decode(&root) != nil {
		return b
	}
	if _, err := decoder.Token(); err == io.EOF { // else there is more behind it
		b.root = root
	}
	return b
}

// retryFields are the places that say in how many seconds to call again.
var retryFields = [][]string{
	{"retry_after"},               // Discord, mailers
	{"parameters", "retry_after"}, // Telegram
	{"retryAfter"},                // Salesforce Marketing Cloud
}

// policies are the limits that HubSpot names, with the length of their windows.
var policies = map[string]time.Duration{
	"SECONDLY":             time.Second,
	"TEN_SECONDLY_ROLLING": 10 * time.Second,
}

// times are the times to call again in the fields of a body.
func (b body) times(clock time.Time) (all []named) {
	for _, path := range retryFields {
		text := b.text(path...)
		if wait, ok := waitFor(text, time.Second, clock); ok {
			all = append(all, named{wait: wait, by: path[len(path)-1] + " in the body: " + text, retry: true})
		}
	}
	if wait, ok := b.costWait(); ok {
		all = append(all, named{wait: wait, by: "extensions.cost in the body"})
	}
	if policy := b.text("policyName"); policies[policy] > 0 {
		all = append(all, named{wait: policies[policy], by: "policyName in the body: " + policy})
	}
	return all
}

// costWait is the time Shopify's bucket of points needs until a query fits that did not.
func (b body) costWait() (time.Duration, bool) {
	requested, ok1 := b.float("extensions", "cost", "requestedQueryCost")
	available, ok2 := b.float("extensions", "cost", "throttleStatus", "currentlyAvailable")
	perSecond, ok3 := b.float("extensions", "cost", "throttleStatus", "restoreRate")
	if !ok1 || !ok2 || !ok3 || perSecond <= 0 {
		return 0, false
	}
	seconds := (requested - available) / perSecond
	switch {
	case math.IsNaN(seconds):
		return 0, false
	case seconds > 2*Longest.Seconds():
		return 2 * Longest, true // a Duration does not hold all of them
	}
	return time.Duration(math.Ceil(max(0, seconds)*1000)) * time.Millisecond, true
}

// counters is GitHub's count of points, which a query may ask for.
func (b body) counters(clock time.Time) []counter {
	c := counter{name: "rateLimit.remaining in the body", left: leftOf([]string{b.text("data", "rateLimit", "remaining")})}
	text := b.text("data", "rateLimit", "resetAt")
	if wait, ok := waitFor(text, time.Second, clock); ok {
		c.reset = named{wait: wait, by: "rateLimit.resetAt in the body: " + text}
	}
	return []counter{c}
}

// at is what stands at a path of names, nil if nothing does.
func at(node any, path ...string) any {
	for _, name := range path {
		object, _ := node.(map[string]any)
		node = object[name]
	}
	return node
}

// text is the text or the number at a path, as it is written there.
func (b body) text(path ...string) string {
	switch value := at(b.root, path...).(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	}
	return ""
}

func (b body) float(path ...string) (float64, bool) {
	number, _ := at(b.root, path...).(json.Number)
	f, err := strconv.ParseFloat(number.String(), 64)
	return f, err == nil
}
