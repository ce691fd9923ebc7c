package refusal

import (
	"strings"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// Each header, with who sends it: what a 429 says by it, and what a 200.
func TestEveryHeaderThatIsKnown(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		who, header string
		wait, rest  time.Duration
	}{
		{"all", "Retry-After: 65", 65 * time.Second, 0},
		{"Shopify", "Retry-After: 2.0", 2 * time.Second, 0},
		{"Attio", "Retry-After: Thu, 01 Jan 2026 00:00:05 GMT", 5 * time.Second, 0},
		{"OpenAI, Azure", "retry-after-ms: 1250", 1250 * time.Millisecond, 0},
		{"rounded up", "retry-after-ms: 1.0000001", 2 * time.Millisecond, 0},
		{"Help Scout, MailerLite", "X-RateLimit-Retry-After: 12", 12 * time.Second, 0},
		{"GitHub, SendGrid", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225630", 30 * time.Second, 30 * time.Second},
		{"Discord", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225630.123", 30123 * time.Millisecond, 30123 * time.Millisecond},
		{"MailerLite classic", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-01-01 00:00:30", 30 * time.Second, 30 * time.Second},
		{"Prisjakt", "X-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 600000", 10 * time.Minute, 10 * time.Minute},
		{"seconds since 1970 by the same name", "X-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 1767225630", 30 * time.Second, 30 * time.Second},
		{"Discord", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset-After: 64.57\nX-RateLimit-Reset: 1767225630", 64570 * time.Millisecond, 64570 * time.Millisecond},
		{"OpenAI", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1h2m3.5s", time.Hour + 2*time.Minute + 3500*time.Millisecond, time.Hour + 2*time.Minute + 3500*time.Millisecond},
		{"OpenAI", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 12ms", 12 * time.Millisecond, 12 * time.Millisecond},
		{"Azure", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 9", 9 * time.Second, 9 * time.Second},
		{"Azure", "x-ratelimit-remaining-requests: -1\nx-ratelimit-reset-requests: 0", 0, 0},
		{"Anthropic", "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-01-01T00:00:07Z", 7 * time.Second, 7 * time.Second},
		{"Anthropic", "anthropic-ratelimit-tokens-remaining: 0\nanthropic-ratelimit-tokens-reset: 2026-01-01T00:00:07.25Z", 7250 * time.Millisecond, 7250 * time.Millisecond},
		{"Anthropic", "anthropic-ratelimit-input-tokens-remaining: 0\nanthropic-ratelimit-input-tokens-reset: 2026-01-01T01:00:07+01:00", 7 * time.Second, 7 * time.Second},
		{"Anthropic", "anthropic-ratelimit-output-tokens-remaining: 0\nanthropic-ratelimit-output-tokens-reset: 2026-01-01T00:00:07Z", 7 * time.Second, 7 * time.Second},
		{"Resend", "ratelimit-remaining: 0\nratelimit-reset: 50", 50 * time.Second, 50 * time.Second},
		{"Airweave, Mangrove", "RateLimit-Remaining: 0\nRateLimit-Reset: 1767225630", 30 * time.Second, 30 * time.Second},
		{"IETF", "RateLimit: limit=10, remaining=0, reset=7", 7 * time.Second, 7 * time.Second},
		{"IETF", `RateLimit: "default";r=0;t=50`, 50 * time.Second, 50 * time.Second},
		{"Kong", "X-RateLimit-Remaining-Minute: 0", 0, 0},
		{"HubSpot", "X-HubSpot-RateLimit-Remaining: 0\nX-HubSpot-RateLimit-Interval-Milliseconds: 10000", 0, 0},
		{"HubSpot", "X-HubSpot-RateLimit-Secondly: 10\nX-HubSpot-RateLimit-Secondly-Remaining: 0", 0, 0},
		{"HubSpot", "X-HubSpot-RateLimit-Daily: 250000\nX-HubSpot-RateLimit-Daily-Remaining: 0", Long, 0},
		// These say nothing of it.
		{"IETF", "X-RateLimit-Limit: 100, 100;w=10", 0, 0},
		{"GitHub", "X-RateLimit-Used: 17\nX-RateLimit-Resource: core", 0, 0},
		{"Discord", "X-RateLimit-Bucket: abcd1234", 0, 0},
		{"Shopify", "X-Shopify-Shop-Api-Call-Limit: 40/40", 0, 0},
		{"Salesforce", "Sforce-Limit-Info: api-usage=18/5000; per-app-api-usage=17/250(appName=x)", 0, 0},
		{"Composio", "X-RateLimit-Window-Size: 600s", 0, 0},
		{"Stripe", "Stripe-Should-Retry: false", 0, 0},
		// Beyond the longest.
		{"all", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 86401", day, day},
	} {
		refused, done := answered(429, date+c.header, ""), answered(200, date+c.header, "")
		if !refused.Throttled || refused.Wait != c.wait {
			t.Errorf("%s: 429 with %q: got %+v, want a wait of %s", c.who, c.header, refused, c.wait)
		}
		if done.Throttled || done.Rest != c.rest {
			t.Errorf("%s: 200 with %q: got %+v, want a rest of %s", c.who, c.header, done, c.rest)
		}
		if want := c.wait == day; refused.Capped != want || done.Capped != want {
			t.Errorf("%s: %q: capped: got %t and %t, want %t", c.who, c.header, refused.Capped, done.Capped, want)
		}
		if want := strings.Contains(c.header, "Daily-Remaining"); refused.Daily != want {
			t.Errorf("%s: %q: daily: got %t, want %t", c.who, c.header, refused.Daily, want)
		}
	}
}

// What a Retry-After means. One that cannot be read makes no refusal of a 503, and of a 429 one that names no time.
func TestRetryAfterIsReadOrIgnored(t *testing.T) {
	const ignored = -1
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"007", 7 * time.Second},
		{" 30 ", 30 * time.Second},
		{"0.0000001", time.Millisecond},
		{"1.0001", 1001 * time.Millisecond},
		{"1.0000000000001", 1001 * time.Millisecond},
		{"1.001", 1001 * time.Millisecond},
		{"86399.9995", Longest},
		{"86400", Longest},
		{"86401", Longest},
		{"99999999999999999999", Longest},
		{"00000000000000000030", 30 * time.Second},
		{"1767225630000.5", 30*time.Second + time.Millisecond},
		{"6m0s", 6 * time.Minute},
		{"1d", 24 * time.Hour},
		{"9999999999h9999999999h", Longest},
		{"30, 60", time.Minute},
		{"60, 30", time.Minute},
		{"30,, banana, -5", 30 * time.Second},
		{"30, 99999999999", Longest},
		{"30, Thu, 01 Jan 2026 00:01:00 GMT", time.Minute},
		{"Thu, 01 Jan 2026 00:01:00 GMT, 30", time.Minute},
		{"30\nRetry-After: 60\nRetry-After: x", time.Minute},
		{"Thu, 1 Jan 2026 00:01:00 GMT", time.Minute},
		{"Thursday, 01-Jan-26 00:01:00 GMT", time.Minute},
		{"Thu Jan  1 00:01:00 2026", time.Minute},
		{"Thu, 01 Jan 2026 01:01:00 +0100", time.Minute},
		{"2026-01-01T00:01:00Z", time.Minute},
		{"Sunday, 06-Nov-94 08:49:37 GMT", Least},
		{"Sunday, 06-Nov-74 08:49:37 GMT", Longest},
		{"Thu, 01 Jan 1970 00:00:00 GMT", Least},
		{"Fri, 31 Dec 9999 23:59:59 GMT", Longest},
		{"1000000000", Least}, // in 2001
		{"0", Least},
		{"0.0", Least},

		{"", ignored},
		{"-1", ignored},
		{"+1", ignored},
		{"-0", ignored},
		{"1e9", ignored},
		{"1E3", ignored},
		{"0x10", ignored},
		{"1_000", ignored},
		{"1 000", ignored},
		{"1,5x", time.Second}, // two values, of which one can be read
		{".5", ignored},
		{"5.", ignored},
		{"1.2.3", ignored},
		{"NaN", ignored},
		{"nan", ignored},
		{"Inf", ignored},
		{"-Inf", ignored},
		{"infinity", ignored},
		{"٣٠", ignored},
		{"3０", ignored},
		{"30\x00", ignored},
		{"100000000000000000000", ignored}, // 21 digits
		{"000000000000000000030", ignored},
		{strings.Repeat("9", 5000), ignored},
		{strings.Repeat("1,", 5000), ignored},
		{"-6m", ignored},
		{"6m0", ignored},
		{"6 m", ignored},
		{"m", ignored},
		{"6w", ignored},
		{"soon", ignored},
		{"null", ignored},
		{"Thu, 32 Jan 2026 00:01:00 GMT", ignored},
		{"Thu, 01 Jan 2026 25:01:00 GMT", ignored},
		{"Thu, 01 Jan 2026 00:01:00 CET", ignored},
		{"2026-01-01", ignored},
	} {
		got := answered(503, "Retry-After: "+c.value, "")
		if got.Throttled != (c.want != ignored) || got.Wait != max(0, c.want) {
			t.Errorf("503 with Retry-After: %.60q: got %+v, want a wait of %s", c.value, got, c.want)
		}
		if got := answered(429, "Retry-After: "+c.value, ""); !got.Throttled || got.Wait != max(0, c.want) {
			t.Errorf("429 with Retry-After: %.60q: got %+v, want throttled for %s", c.value, got, max(0, c.want))
		}
	}
}

func TestCountsAreReadOrIgnored(t *testing.T) {
	for value, want := range map[string]bool{
		"0": true, "00": true, "0.0": true, "5, 0": true, "0, 5": true, "5\nX-RateLimit-Remaining: 0": true,
		"1": false, "0.5": false, "-1": false, "-0": false, "": false, "null": false, "0x0": false, "none": false, "0;w=1": false,
	} {
		got := answered(404, date+"X-RateLimit-Reset: 60\nX-RateLimit-Remaining: "+value, "")
		if (got.Rest == time.Minute) != want || got.Throttled {
			t.Errorf("404 with %q calls left: got %+v, want a rest of 1m0s: %t", value, got, want)
		}
	}
}

func TestTheScopeIsWhatTheAnswerSays(t *testing.T) {
	for _, c := range []struct {
		status       int
		header, body string
		want         jobs.Scope
	}{
		{429, "", "", jobs.ScopeOfFile},
		{429, "X-RateLimit-Global: true", "", jobs.ScopeQueue},
		{429, "X-RateLimit-Scope: global", "", jobs.ScopeQueue},
		{429, "X-RateLimit-Scope: user", "", jobs.ScopeLane},
		{429, "X-RateLimit-Scope: shared", "", jobs.ScopeLane},
		{429, "X-RateLimit-Scope: planet", "", jobs.ScopeOfFile},
		{429, "X-RateLimit-Scope: user\nX-RateLimit-Global: true", "", jobs.ScopeQueue},
		{429, "", `{"global":true}`, jobs.ScopeQueue},
		{429, "", `{"global":false,"retry_after":1}`, jobs.ScopeLane},
		{429, "", `{"global":"yes"}`, jobs.ScopeOfFile},
		{429, "X-RateLimit-Scope: user", `{"global":true}`, jobs.ScopeQueue},
		{403, "", `{"error":{"errors":[{"reason":"userRateLimitExceeded","message":"User Rate Limit Exceeded"}]}}`, jobs.ScopeLane},
		{403, "", `{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`, jobs.ScopeQueue},
		{429, "", `{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`, jobs.ScopeQueue},
		{403, "", `{"error":{"errors":[{"reason":"userRateLimitExceeded"},{"reason":"rateLimitExceeded"}]}}`, jobs.ScopeQueue},
		{403, "", `{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`, jobs.ScopeOfFile},
		{429, "Stripe-Rate-Limited-Reason: global-rate", "", jobs.ScopeQueue},
		{429, "Stripe-Rate-Limited-Reason: global-concurrency", "", jobs.ScopeQueue},
		{429, "Stripe-Rate-Limited-Reason: endpoint-rate", "", jobs.ScopeQueue},
		{429, "Stripe-Rate-Limited-Reason: endpoint-concurrency", "", jobs.ScopeQueue},
		{429, "Stripe-Rate-Limited-Reason: resource-specific", "", jobs.ScopeLane},
		{429, "", `{"code":"rate_limited","additional_data":{"rate_limit_reason":"connection_limit"}}`, jobs.ScopeQueue},
		{429, "", `{"code":"rate_limited","additional_data":{"rate_limit_reason":"workspace_limit"}}`, jobs.ScopeLane},
		{429, "", `{"code":"rate_limited","additional_data":{"rate_limit_reason":"other"}}`, jobs.ScopeOfFile},
	} {
		if got := answered(c.status, c.header, c.body); !got.Throttled || got.Scope != c.want {
			t.Errorf("status %d, %q, body %q: got %+v, want throttled with scope %q", c.status, c.header, c.body, got, c.want)
		}
	}
}
