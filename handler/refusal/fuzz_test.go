package refusal

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
)

func FuzzRead(f *testing.F) {
	for _, status := range []int{200, 403, 404, 429, 503} {
		f.Add(status, date+"Retry-After: 30\nRetry-After: 9223372037", `{"retry_after":0.3,"global":true}`, int64(0))
		f.Add(status, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225660.5", `{"errors":[{"type":"RATE_LIMITED"}]}`, int64(1e18))
		f.Add(status, "RateLimit: \"a\";r=0;t=99999999999999999999, b;r=0", `{"error":{"code":"lock_timeout"}}`, int64(-1))
		f.Add(status, "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 6m0s", `{"ok":false,"error":"ratelimited"}`, int64(math.MaxInt64))
		f.Add(status, "Date: Sunday, 06-Nov-94 08:49:37 GMT", "try again in 41.724s, THROTTLED insufficient_quota", int64(math.MinInt64))
		f.Add(status, "", `{"extensions":{"cost":{"requestedQueryCost":1e300,"throttleStatus":{"currentlyAvailable":-1e300,"restoreRate":1e-300}}}}`, int64(0))
	}
	f.Fuzz(func(t *testing.T, status int, header, body string, nanos int64) {
		clock := time.Unix(0, nanos)
		got := Read(status, headerOf(header), []byte(body), clock)
		if again := Read(status, headerOf(header), []byte(body), clock); again != got {
			t.Errorf("got %+v and then %+v, want the same for the same", got, again)
		}
		set := 0
		for _, d := range []time.Duration{got.Wait, got.RetryAfter, got.Rest} {
			if d < 0 || d > Longest || d%time.Millisecond != 0 {
				t.Errorf("got %+v, want times of whole milliseconds from 0 to %s", got, Longest)
			}
			if d > 0 {
				set++
			}
		}
		if set > 1 || got.Throttled && (got.RetryAfter > 0 || got.Rest > 0) || !got.Throttled && (got.Wait > 0 || got.Daily || got.Hopeless) {
			t.Errorf("got %+v, want one of throttled, retry and rest", got)
		}
		if got.Capped && max(got.Wait, got.RetryAfter, got.Rest) != Longest {
			t.Errorf("got %+v, want it capped only at %s", got, Longest)
		}
		if strings.ContainsFunc(got.Why, unicode.IsControl) || (got.Why == "") != (!got.Throttled && set == 0) {
			t.Errorf("got the reason %q in %+v, want one line if anything is said", got.Why, got)
		}
		if got.Throttled && (status < 200 || status >= 300 && status < 400 || status > 599) {
			t.Errorf("status %d: got %+v, want it never throttled", status, got)
		}
		if got.Throttled && status < 300 && !hasALimitWord(body) {
			t.Errorf("status %d, body %q: got %+v, want it throttled by a word only", status, body, got)
		}
	})
}

// hasALimitWord looks for the words without caring where they stand.
func hasALimitWord(body string) bool {
	var root any
	if json.Unmarshal([]byte(body), &root) != nil {
		return false
	}
	plain, _ := json.Marshal(root) // without escapes for letters
	for _, w := range limitWords {
		if strings.Contains(strings.ToLower(string(plain)), strings.ToLower(w.word)) {
			return true
		}
	}
	return strings.Contains(string(plain), "ratelimited")
}

func FuzzNumbers(f *testing.F) {
	for _, text := range []string{"0", "30", "2.0", "1.9999999999", "99999999999999999999", "9223372036.854775807", "-1", "1e9", "NaN", ".5", "5.", "0x1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := parseDecimal(text)
		if !ok {
			return
		}
		if strings.Trim(text, "0123456789.") != "" || strings.Count(text, ".") > 1 || len(text) > maxDigits+1 {
			t.Errorf("%q: got a number, want only digits and a point taken", text)
		}
		for _, unit := range []time.Duration{1, time.Millisecond, time.Second, time.Hour, 24 * time.Hour} {
			got := n.times(unit)
			var exact float64
			if err := json.Unmarshal([]byte(withoutZeros(text)), &exact); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			exact *= float64(unit)
			switch {
			case got < 0:
				t.Errorf("%q times %s: got %d, want nothing below 0", text, unit, got)
			case exact < 1e15 && (float64(got) < exact-1 || float64(got) > exact+float64(unit)/1e9+2):
				t.Errorf("%q times %s: got %d, want %g rounded up", text, unit, got, exact)
			case exact > 2*math.MaxInt64 && got != math.MaxInt64:
				t.Errorf("%q times %s: got %d, want the largest there is", text, unit, got)
			}
		}
	})
}

// withoutZeros is a number as JSON writes it, without zeros before it.
func withoutZeros(text string) string {
	text = strings.TrimLeft(text, "0")
	if text == "" || text[0] == '.' {
		return "0" + text
	}
	return text
}

func FuzzDurations(f *testing.F) {
	for _, text := range []string{"6m0s", "12ms", "1h2m3.5s", "1d", "7µs", "9999999999h9999999999h", "1s1", "s", "1.s", "-1s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseDuration(text)
		if !ok {
			return
		}
		if got < 0 {
			t.Errorf("%q: got %d, want nothing below 0", text, got)
		}
		if want, err := time.ParseDuration(text); err == nil && (got < want || got > want+time.Duration(len(text))) {
			t.Errorf("%q: got %s, want %s, rounded up", text, got, want)
		}
	})
}

func FuzzRateLimitField(f *testing.F) {
	for _, text := range []string{
		"limit=100, remaining=50, reset=5", "default;r=50;t=5", `"burst";r=50;t=30, "day";r=0;t=36000;pk=:cHsdsRa894==:`,
		`"a\"b;r=0`, `"a;r=0`, ",;=", "remaining=0\nreset=9",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		for _, c := range rateLimitCounters(lines, now) {
			if c.left == none && !strings.Contains(text, "0") {
				t.Errorf("%q: got nothing left, want a 0 for it", text)
			}
			if (c.reset.by == "") != (c.reset == named{}) {
				t.Errorf("%q: got %+v, want a time with what says it", text, c.reset)
			}
		}
		parts, _ := splitOutside(text, ',')
		if got := strings.Join(parts, ","); got != text {
			t.Errorf("%q: got %q joined, want what was split", text, got)
		}
	})
}

func FuzzDates(f *testing.F) {
	for _, text := range []string{
		"Thu, 01 Jan 2026 00:01:00 GMT", "Thursday, 01-Jan-26 00:01:00 GMT", "Thu Jan  1 00:01:00 2026", "2026-01-01T00:01:00+14:00",
		"2026-01-01 00:01:00", "Sat, 29 Feb 2076 00:00:00 GMT", "Saturday, 29-Feb-76 00:00:00 GMT",
	} {
		f.Add(text, int64(0))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		clock := time.Unix(seconds%10_000_000_000, 0)
		got, ok := parseDate(text, clock)
		if !ok {
			return
		}
		if _, err := time.Parse(shortYear, text); err == nil {
			if years := got.Sub(clock).Hours() / 24 / 365.25; math.Abs(years) > 101 {
				t.Errorf("%q in %s: got %s, want a year near", text, clock, got)
			}
		}
	})
}
