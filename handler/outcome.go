package handler

import (
	"time"

	"queuekeeper/jobs"
)

// Outcome is what a handler's error means for its job.
type Outcome struct {
	Kind  jobs.Kind     // KindDone, KindDead, KindFail or KindThrottled
	Delay time.Duration // fail: until the next attempt; throttled: how long to pause, 0 if the API did not say
	Scope jobs.Scope    // throttled: what is to pause
	Error string        // for people; see Describe
}

// Judge is the one table from a handler's error to the outcome of its job. backoff is the delay after a plain
// failure.
func Judge(err error, backoff time.Duration) Outcome {
	if err == nil {
		return Outcome{Kind: jobs.KindDone}
	}
	text := Describe(err)
	if jobs.IsPermanent(err) {
		return Outcome{Kind: jobs.KindDead, Error: text}
	}
	if pause, scope, ok := jobs.AsThrottled(err); ok {
		return Outcome{Kind: jobs.KindThrottled, Delay: max(0, pause), Scope: scope, Error: text}
	}
	if after, ok := jobs.AsRetryAfter(err); ok {
		return Outcome{Kind: jobs.KindFail, Delay: max(0, after), Error: text}
	}
	return Outcome{Kind: jobs.KindFail, Delay: backoff, Error: text}
}

// Backoff is the delay after a failure: base doubled for each counted attempt (attempts - excused), at most
// most, and half of that random. random is in [0, 1].
func Backoff(counted int, base, most time.Duration, random float64) time.Duration {
	counted = min(max(0, counted), 62) // a Duration has 63 bits
	delay := most
	if base <= most>>counted { // else base<<counted is above most, or above what a Duration holds
		delay = base << counted
	}
	return delay - time.Duration(float64(delay/2)*random)
}
