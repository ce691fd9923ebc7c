// Package refusal tells from an API's answer whether it refused a call because it was called too often, for how long
// to stay away, and whom that is for. It is the only place that knows how the many APIs say so.
package refusal

import (
	"fmt"
	"net/http"
	"time"

	"queuekeeper/jobs"
)

const (
	// Longest is the longest time that is believed: what an answer names beyond it is cut to it.
	Longest = 24 * time.Hour

	// Least is how long to stay away from an API that refuses and names a time that is not after now, as
	// "Retry-After: 0" does: the next call at once would be refused as well.
	Least = time.Second

	// Long is how long to stay away at least where waiting does not help, and from a daily limit that names no time.
	Long = time.Hour

	// busyFor is when to try again what another request holds, if the answer does not say.
	busyFor = 2 * time.Second
)

// Answer is what an API's answer says about being called too often. At most one of Throttled, RetryAfter and Rest is
// set. Times are from now on, in whole milliseconds rounded up, and at most Longest.
type Answer struct {
	Throttled bool          // the API refused: the attempt does not count
	Wait      time.Duration // throttled: until it may be called again; 0: it did not say
	Daily     bool          // throttled: by the limit of a day; Wait is Long if no time was named
	Hopeless  bool          // throttled: by what waiting does not cure, like spent credit; Wait is at least Long

	RetryAfter time.Duration // not a limit: what the call needs is busy, and this job alone tries again after that

	Rest time.Duration // not refused, but no call is left until then: start nothing, the job keeps its outcome

	Scope  jobs.Scope // throttled or Rest: for whom, as the answer says; jobs.ScopeOfFile if it does not
	Capped bool       // Wait, RetryAfter or Rest is Longest because the answer named more
	Why    string     // one line for people: what of the answer says so; "" if nothing does
}

// Read judges an answer by its status, its header (names as net/http writes them) and the first 64 kB of its body.
// Absolute times are taken against the answer's Date, and against now if it has none that can be read.
func Read(status int, header http.Header, body []byte, now time.Time) Answer {
	r := newResponse(status, header, body, now)
	proof := r.proof()
	switch {
	case proof == "":
		return r.rest()
	case r.busy():
		return r.retry()
	}
	return r.throttled(proof)
}

// response is an answer with what several questions about it need.
type response struct {
	status   int
	header   http.Header
	clock    time.Time // the server's
	body     body
	counters []counter
}

func newResponse(status int, header http.Header, text []byte, now time.Time) *response {
	r := &response{status: status, header: header, clock: now, body: newBody(text)}
	if date, ok := parseDate(header.Get("Date"), now); ok {
		r.clock = date
	}
	r.counters = append(headerCounters(header, r.clock), rateLimitCounters(header.Values("RateLimit"), r.clock)...)
	r.counters = append(r.counters, r.body.counters(r.clock)...)
	return r
}

// proof is by what the answer is a refusal, "" if it is none. What was done must not be done again: an answer of 2xx is
// one only by words that say so in the place made for them.
func (r *response) proof() string {
	status := fmt.Sprintf("status %d", r.status)
	switch {
	case r.status == http.StatusTooManyRequests:
		return status
	case r.status >= 200 && r.status < 300:
		if word := r.body.refusesInside(); word != "" {
			return fmt.Sprintf("status %d, %q in the body", r.status, word)
		}
	case r.status < 400 || r.status > 599:
		return ""
	case saysRetry(r.header, r.clock):
		return status
	case r.status == http.StatusForbidden:
		if c, ok := spent(r.counters); ok {
			return status + ", " + c.name + ": 0"
		}
		if word := r.body.limitWord(); word != "" {
			return fmt.Sprintf("%s, %q in the body", status, word)
		}
	}
	return ""
}

func (r *response) throttled(proof string) Answer {
	a := Answer{Throttled: true, Scope: r.scope(), Why: proof}
	if until, ok := r.until(); ok {
		a.Wait, a.Capped = bounded(until.wait)
		a.Why += ", " + until.by
	}
	if word := r.body.hopelessWord(); word != "" {
		a.Hopeless = true
		a.Wait = max(a.Wait, Long)
		a.Why += fmt.Sprintf(", %q in the body: waiting does not cure it", word)
	}
	if by := r.daily(); by != "" {
		a.Daily = true
		a.Why += ", the limit of a day by " + by
		if a.Wait == 0 {
			a.Wait = Long
		}
	}
	return a
}

// busy reports whether a 429 is about one object that another request holds, and not about a limit.
func (r *response) busy() bool {
	return r.status == http.StatusTooManyRequests && r.body.text("error", "code") == "lock_timeout" &&
		r.header.Get("Stripe-Rate-Limited-Reason") == ""
}

func (r *response) retry() Answer {
	a := Answer{RetryAfter: busyFor, Why: fmt.Sprintf(`status %d, "lock_timeout" in the body`, r.status)}
	if until, ok := first(retryHeaders(r.header, r.clock)); ok {
		a.RetryAfter, a.Capped = bounded(until.wait)
		a.Why += ", " + until.by
	}
	return a
}

func (r *response) rest() Answer {
	c, ok := spent(r.counters)
	if !ok || c.reset.wait <= 0 {
		return Answer{}
	}
	a := Answer{Scope: headerScope(r.header), Why: c.name + ": 0, " + c.reset.by}
	a.Rest, a.Capped = bounded(c.reset.wait)
	return a
}

// daily is by what the limit is that of a day, "" if nothing says so.
func (r *response) daily() string {
	for _, c := range r.counters {
		if c.daily && c.left == none {
			return c.name + ": 0"
		}
	}
	return r.body.dailyWord()
}

// until is the time that counts of those the answer names.
func (r *response) until() (named, bool) {
	all := append(retryHeaders(r.header, r.clock), r.body.times(r.clock)...)
	all = append(all, resets(r.counters)...)
	return first(append(all, r.body.proseTimes(r.clock)...))
}
