package refusal

import (
	"testing"
	"time"
)

// Each form the drafts gave the fields, as a 404 sends it: what counts is a rest, or nothing.
func TestEveryDraftOfRateLimitIsRead(t *testing.T) {
	for _, c := range []struct {
		drafts, header string
		want           time.Duration
	}{
		{"01 to 04", "RateLimit-Limit: 100, 100;w=10\nRateLimit-Remaining: 0\nRateLimit-Reset: 50", 50 * time.Second},
		{"01 to 04", "RateLimit-Limit: 100, 100;w=10\nRateLimit-Remaining: 50\nRateLimit-Reset: 50", 0},
		{"05, 06", "RateLimit-Limit: 100\nRateLimit-Remaining: 0\nRateLimit-Reset: 50\nRateLimit-Policy: 10;w=1, 50;w=60;burst=1000;comment=\"sliding window\"", 50 * time.Second},
		{"07", "RateLimit: limit=100, remaining=0, reset=5\nRateLimit-Policy: 100;w=10", 5 * time.Second},
		{"07", "RateLimit: limit=100, remaining=50, reset=5", 0},
		{"07", "RateLimit: reset=5", 0},
		{"07, other order", "RateLimit: reset=5,remaining=0,limit=100", 5 * time.Second},
		{"07, in two lines", "RateLimit: limit=100, remaining=0\nRateLimit: reset=5", 5 * time.Second},
		{"07, with spaces", "RateLimit: limit = 100 , remaining = 0 , reset = 5", 5 * time.Second},
		{"between", "RateLimit: default;r=0;t=5\nRateLimit-Policy: default;l=100;w=10", 5 * time.Second},
		{"between", "RateLimit: default;r=50;t=5", 0},
		{"08 to 10", `RateLimit: "default";r=0;t=30`, 30 * time.Second},
		{"08 to 10", `RateLimit: "default";r=50;t=30`, 0},
		{"08 to 10, several", `RateLimit: "a";r=0;t=30, "b";r=0;t=40, "c";r=1;t=50`, 40 * time.Second},
		{"08 to 10, in two lines", "RateLimit: \"a\";r=0;t=30\nRateLimit: \"b\";r=0;t=40", 40 * time.Second},
		{"08 to 10, no time", `RateLimit: "a";r=0`, 0},
		{"08 to 10, one without a time", `RateLimit: "a";r=0, "b";r=0;t=40`, 40 * time.Second},
		{"08 to 10, q, pk and qu", `RateLimit: "a";q=10;qu="content-bytes";pk=:cHsdsRa894==:;r=0;t=30`, 30 * time.Second},
		{"08 to 10, with spaces", "RateLimit:  \"a\" ; r=0 ;\tt=30 , \"b\"; r=1", 30 * time.Second},
		{"08 to 10, other order", `RateLimit: "a";t=30;r=0`, 30 * time.Second},
		{"08 to 10, a name to trip over", `RateLimit: "a, \"b;r=0;t=99";r=0;t=30`, 30 * time.Second},
		{"08 to 10, a name to trip over", `RateLimit: "a;r=0;t=99;b";r=5;t=30`, 0},
		{"08 to 10, a name to trip over", `RateLimit: "remaining=0;t=1";r=5;t=30`, 0},
		{"a date for a wait", "RateLimit: limit=10, remaining=0, reset=1767225630", 30 * time.Second},

		{"malformed", `RateLimit: "a;r=0;t=30`, 0},
		{"malformed", `RateLimit: "a";r=0;t=30, "b`, 0},
		{"malformed", `RateLimit: "a";r=0;t=-30`, 0},
		{"malformed", `RateLimit: "a";r=-1;t=30`, 0},
		{"malformed", `RateLimit: "a";r;t=30`, 0},
		{"malformed", `RateLimit: "a";r=0;t=1e3`, 0},
		{"malformed", "RateLimit: remaining=0, reset=NaN", 0},
		{"malformed", "RateLimit: ,,;;=,=;", 0},
		{"malformed", "RateLimit: 0", 0},
		{"malformed", "RateLimit:", 0},
	} {
		if got := answered(404, date+c.header, ""); got.Throttled || got.Rest != c.want {
			t.Errorf("draft %s: %q: got %+v, want a rest of %s", c.drafts, c.header, got, c.want)
		}
	}
}
