package refusal

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// now is 1767225600 seconds after 1970.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// answered reads an answer whose header is given as it is sent: "Name: value", one a line.
func answered(status int, header, body string) Answer {
	return Read(status, headerOf(header), []byte(body), now)
}

func headerOf(lines string) http.Header {
	header := http.Header{}
	for line := range strings.SplitSeq(lines, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return header
}

const date = "Date: Thu, 01 Jan 2026 00:00:00 GMT\n"

// What APIs send with a 429, and how long to wait for it.
func TestARefusalLastsAsLongAsItSays(t *testing.T) {
	for _, c := range []struct {
		header, body string
		want         time.Duration
	}{
		{"Retry-After: 0", "", Least},
		{"Retry-After: 30", "", 30 * time.Second},
		{"Retry-After: 2.0", "", 2 * time.Second},
		{"Retry-After: 1.5", "", 1500 * time.Millisecond},
		{"Retry-After: -5", "", 0},
		{"Retry-After: NaN", "", 0},
		{"Retry-After: 1e9", "", 0},
		{"Retry-After:", "", 0},
		{"Retry-After: 9223372037", "", Longest},
		{"Retry-After: Thu, 01 Jan 2026 00:01:00 GMT", "", time.Minute},
		{"X-RateLimit-Reset: 1767225660\nX-RateLimit-Remaining: 0", "", time.Minute},
		{"X-RateLimit-Reset: 1767225660.5", "", 60500 * time.Millisecond},
		{"X-RateLimit-Reset: 1767225660000", "", time.Minute},
		{"x-ratelimit-reset-requests: 6m0s", "", 6 * time.Minute},
		{"x-ratelimit-reset-requests: 12ms", "", 12 * time.Millisecond},
		{"x-ratelimit-remaining-requests: 3\nx-ratelimit-reset-requests: 6m0s\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 1s", "", time.Second},
		{"anthropic-ratelimit-requests-reset: 2026-01-01T00:00:07Z\nretry-after: 3", "", 3 * time.Second},
		{"Retry-After: 1337\nX-RateLimit-Remaining: 9\nX-RateLimit-Reset-After: 64.57\nX-RateLimit-Scope: shared", "", 1337 * time.Second},
		{"RateLimit: limit=1, remaining=0, reset=20", "", 20 * time.Second},
		{`RateLimit: "a";r=5;t=9, "day";r=0;t=36000`, "", 10 * time.Hour},
		{"RateLimit-Reset: 1767225620", "", 20 * time.Second},
		{"", `{"ok":false,"error_code":429,"parameters":{"retry_after":7}}`, 7 * time.Second},
	} {
		got := answered(429, date+c.header, c.body)
		if !got.Throttled || got.Wait != c.want || got.Rest != 0 {
			t.Errorf("429 with %q and body %q: got %+v, want throttled for %s", c.header, c.body, got, c.want)
		}
		if want := strings.Contains(c.header, "9223372037"); got.Capped != want {
			t.Errorf("429 with %q: capped: got %t, want %t", c.header, got.Capped, want)
		}
	}
}

func TestTimeIsTheServersWhereItTellsIts(t *testing.T) {
	const retry = "Retry-After: Thu, 01 Jan 2026 00:01:00 GMT"
	for _, c := range []struct {
		header string
		own    time.Duration // how far our clock is ahead
		want   time.Duration
	}{
		{date + retry, time.Hour, time.Minute},
		{date + retry, -time.Hour, time.Minute},
		{date + "X-RateLimit-Reset: 1767225660", time.Hour, time.Minute},
		{date + "Retry-After: 30", time.Hour, 30 * time.Second},
		{retry, 20 * time.Second, 40 * time.Second},
		{"Date: yesterday\n" + retry, 20 * time.Second, 40 * time.Second},
		{retry, time.Hour, Least},
		{retry, 59*time.Second + 999_500*time.Microsecond, time.Millisecond},
	} {
		if got := Read(429, headerOf(c.header), nil, now.Add(c.own)); got.Wait != c.want {
			t.Errorf("%q with our clock %s ahead: got %+v, want a wait of %s", c.header, c.own, got, c.want)
		}
	}
}

// The outcome of each kind of answer. Rest is 60 s where it is not said otherwise.
func TestOnlyARefusalIsThrottled(t *testing.T) {
	const (
		spent = "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225660"
		left  = "X-RateLimit-Remaining: 4999\nX-RateLimit-Reset: 1767225660"
	)
	throttled, resting, nothing := Answer{Throttled: true}, Answer{Rest: time.Minute}, Answer{}
	for _, c := range []struct {
		about        string
		statuses     []int
		header, body string
		want         Answer
	}{
		{"nothing said", []int{429}, "", "", throttled},
		{"nothing said", []int{200, 204, 301, 304, 400, 401, 403, 404, 408, 500, 503, 529, 0, -1, 100, 600, 999}, "", "", nothing},
		{"calls left", []int{200, 403, 404, 500}, left, "", nothing},
		{"calls left, another limit reached", []int{429}, left, "", throttled},
		{"none left", []int{403, 429}, spent, "", Answer{Throttled: true, Wait: time.Minute}},
		{"none left", []int{200, 201, 301, 400, 401, 404, 410, 422, 500, 503}, spent, "", resting},
		{"none left, until then past", []int{200, 404}, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225000", "", nothing},
		{"none left, no time", []int{200, 404}, "X-RateLimit-Remaining: 0", "", nothing},
		{"none left, no time", []int{403}, "X-RateLimit-Remaining: 0", "", throttled},
		{"none left of the draft's", []int{403}, `RateLimit: "x";r=0;t=60`, "", Answer{Throttled: true, Wait: time.Minute}},
		{"none left of the draft's", []int{404}, `RateLimit: "x";r=0;t=60`, "", resting},
		{"retry after", []int{400, 403, 404, 409, 413, 423, 429, 500, 502, 503, 529, 599}, "Retry-After: 60", "", Answer{Throttled: true, Wait: time.Minute}},
		{"retry after", []int{200, 202, 301, 302, 399, 600, 999}, "Retry-After: 60", "", nothing},
		{"retry after in ms", []int{429, 503}, "Retry-After-Ms: 60000", "", Answer{Throttled: true, Wait: time.Minute}},
		{"retry after of a count", []int{404, 503}, "X-RateLimit-Retry-After: 60", "", nothing},
		{"unreadable retry after", []int{403, 404, 503}, "Retry-After: -1", "", nothing},
		{"past retry after", []int{503}, "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", "", Answer{Throttled: true, Wait: Least}},
		{"a limit's word", []int{403}, "", `{"message":"You have exceeded a secondary rate limit."}`, throttled},
		{"a limit's word", []int{200, 400, 401, 404, 422, 500}, "", `{"message":"You have exceeded a secondary rate limit."}`, nothing},
		{"words and calls left", []int{403}, left, "Secondary Rate Limit", throttled},
		{"no right", []int{403}, left, `{"message":"Resource not accessible by integration"}`, nothing},
		{"words of a limit of space", []int{403}, "", `{"reason":"storageQuotaExceeded"}`, nothing},
		{"no right", []int{403}, "", `{"error":{"errors":[{"domain":"global","reason":"insufficientPermissions"}]}}`, nothing},
	} {
		for _, status := range c.statuses {
			got := answered(status, date+c.header, c.body)
			if (got.Why != "") != (got.Throttled || got.Rest > 0) {
				t.Errorf("%s, status %d: got the reason %q, want one if there is something to say", c.about, status, got.Why)
			}
			if got.Why = ""; got != c.want {
				t.Errorf("%s, status %d: got %+v, want %+v", c.about, status, got, c.want)
			}
		}
	}
}

func TestTheMostTrustedTimeCounts(t *testing.T) {
	const (
		reset = "X-RateLimit-Remaining: 0\nX-RateLimit-Reset-After: 50\n"
		prose = `"message":"try again in 20s"`
	)
	for _, c := range []struct {
		header, body string
		want         time.Duration
	}{
		{reset + "Retry-After: 5\nRetry-After-Ms: 9000", `{"retry_after":40}`, 5 * time.Second},
		{reset + "Retry-After-Ms: 9000\nX-RateLimit-Retry-After: 12", `{"retry_after":40}`, 9 * time.Second},
		{reset + "X-RateLimit-Retry-After: 12", `{"retry_after":40}`, 12 * time.Second},
		{reset, `{"retry_after":40,` + prose + `}`, 40 * time.Second},
		{reset, `{` + prose + `}`, 50 * time.Second},
		{"", `{` + prose + `}`, 20 * time.Second},
		// What names no time after now leaves it to what is less trusted.
		{reset + "Retry-After: 0", `{"retry_after":40}`, 40 * time.Second},
		{reset + "Retry-After: 0", "", 50 * time.Second},
		{reset + "Retry-After: soon", "", 50 * time.Second},
		{"Retry-After: 0", `{"retry_after":0.3}`, 300 * time.Millisecond},
		// The finer of two that differ by rounding, and by no more.
		{"Retry-After: 1", `{"retry_after":1.25}`, 1250 * time.Millisecond},
		{"Retry-After: 1\nRetry-After-Ms: 1250", "", 1250 * time.Millisecond},
		{"Retry-After: 2", `{"retry_after":1.25}`, 2 * time.Second},
		{"Retry-After: 7", `{"retry_after":6457}`, 7 * time.Second},
		{"Retry-After: 1\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset-After: 1.5", "", time.Second},
		// Of several counts with nothing left, the last to start anew; a count that has some says nothing.
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 10\nRateLimit-Remaining: 0\nRateLimit-Reset: 30", "", 30 * time.Second},
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 10\nRateLimit-Remaining: 1\nRateLimit-Reset: 30", "", 10 * time.Second},
		{"X-RateLimit-Remaining: 1\nX-RateLimit-Reset: 10\nRateLimit-Reset: 30", "", 0},
		{"X-RateLimit-Remaining: -1\nX-RateLimit-Reset: 0", "", 0},
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 0", "", Least},
	} {
		if got := answered(429, date+c.header, c.body); got.Wait != c.want {
			t.Errorf("429 with %q and body %q: got %+v, want a wait of %s", c.header, c.body, got, c.want)
		}
	}
}

// Stripe's lock_timeout.
func TestABusyObjectIsNoLimit(t *testing.T) {
	const body = `{"error":{"code":"lock_timeout","type":"invalid_request_error"}}`
	for _, c := range []struct {
		status int
		header string
		want   Answer
	}{
		{429, "", Answer{RetryAfter: 2 * time.Second}},
		{429, "Retry-After: 3", Answer{RetryAfter: 3 * time.Second}},
		{429, "Retry-After: 9999999", Answer{RetryAfter: Longest, Capped: true}},
		{429, "Stripe-Rate-Limited-Reason: global-rate", Answer{Throttled: true, Scope: jobs.ScopeQueue}},
		{400, "", Answer{}},
	} {
		got := answered(c.status, c.header, body)
		if got.Why = ""; got != c.want {
			t.Errorf("lock_timeout, status %d, %q: got %+v, want %+v", c.status, c.header, got, c.want)
		}
	}
}

func TestWhySaysWhichHeaderOrWordItWas(t *testing.T) {
	for _, c := range []struct {
		status             int
		header, body, want string
	}{
		{429, "Retry-After: 30", "", "status 429, Retry-After: 30"},
		{429, "", "", "status 429"},
		{403, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225660", "", "status 403, X-RateLimit-Remaining: 0, X-RateLimit-Reset: 1767225660"},
		{403, "", "API rate limit exceeded for 10.0.0.1", `status 403, "rate limit exceeded" in the body`},
		{404, `RateLimit: "day";r=0;t=60`, "", "RateLimit r: 0, RateLimit t: 60"},
		{429, "", `{"error":{"code":"insufficient_quota"}}`, `status 429, "insufficient_quota" in the body: waiting does not cure it`},
		{429, "", `{"policyName":"DAILY"}`, "status 429, the limit of a day by policyName in the body: DAILY"},
		{200, "", `{"errors":[{"type":"RATE_LIMITED"}]}`, `status 200, "RATE_LIMITED" in the body`},
	} {
		if got := answered(c.status, c.header, c.body); got.Why != c.want {
			t.Errorf("status %d, %q, body %q: got %q, want %q", c.status, c.header, c.body, got.Why, c.want)
		}
	}
}
