package refusal

import (
	"strings"
	"testing"
	"time"
)

func TestABodySaysHowLong(t *testing.T) {
	const cost = `{"errors":[{"message":"Throttled"}],"extensions":{"cost":{"requestedQueryCost":%R,"throttleStatus":{"currentlyAvailable":%A,"restoreRate":%P}}}}`
	points := func(requested, available, perSecond string) string {
		return strings.NewReplacer("%R", requested, "%A", available, "%P", perSecond).Replace(cost)
	}
	for _, c := range []struct {
		who, body string
		want      time.Duration
	}{
		{"Discord", `{"message":"…","retry_after":64.57,"global":false}`, 64570 * time.Millisecond},
		{"Telegram", `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 9","parameters":{"retry_after":7}}`, 7 * time.Second},
		{"Telegram", `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 9"}`, 9 * time.Second},
		{"Salesforce", `{"retryAfter":5,"code":50100}`, 5 * time.Second},
		{"a number in quotes", `{"retry_after":"30"}`, 30 * time.Second},
		{"Shopify", points("100", "40", "50"), 1200 * time.Millisecond},
		{"Shopify", points("100.0", "99.9", "3"), 34 * time.Millisecond},
		{"Shopify", points("100", "200", "50"), Least},
		{"Shopify", points("1e300", "0", "1e-300"), Longest},
		{"Shopify", points("100", "0", "0"), 0},
		{"Shopify", points("100", "0", "-1"), 0},
		{"Shopify", points("1e999", "0", "1"), 0},
		{"Shopify", points("null", "0", "1"), 0},
		{"GitHub", `{"data":{"rateLimit":{"remaining":0,"resetAt":"2026-01-01T00:10:00Z"}}}`, 10 * time.Minute},
		{"GitHub", `{"data":{"rateLimit":{"remaining":9,"resetAt":"2026-01-01T00:10:00Z"}}}`, 0},
		{"HubSpot", `{"errorType":"RATE_LIMIT","policyName":"SECONDLY"}`, time.Second},
		{"HubSpot", `{"errorType":"RATE_LIMIT","policyName":"TEN_SECONDLY_ROLLING"}`, 10 * time.Second},
		{"HubSpot", `{"errorType":"RATE_LIMIT","policyName":"HOURLY"}`, 0},
		{"OpenAI", `{"error":{"message":"Rate limit reached. Please try again in 41.724s. Visit …"}}`, 41724 * time.Millisecond},
		{"OpenAI", `{"error":{"message":"Please try again in 12ms."}}`, 12 * time.Millisecond},
		{"OpenAI", `{"error":{"message":"Please try again in 6m0s."}}`, 6 * time.Minute},
		{"Google", `{"error":{"message":"User-rate limit exceeded.  Retry after 2026-01-01T00:00:08.500Z (Mail sending)"}}`, 8500 * time.Millisecond},
		{"text", "Too many requests. Please retry after 5 minutes.", 5 * time.Minute},
		{"text", "try again in 20 seconds", 20 * time.Second},
		{"text", "try again in 1 hour", time.Hour},
		{"text", "try again in a minute", 0},
		{"text", "try again in 1e9", 0},

		{"nothing", ``, 0},
		{"not JSON", `<html>retry_after: 7</html>`, 0},
		{"cut off", `{"retry_after":7`, 0},
		{"more behind it", `{"retry_after":7} {"retry_after":8}`, 0},
		{"list", `[{"retry_after":7}]`, 0},
		{"below 0", `{"retry_after":-7}`, 0},
		{"exponent", `{"retry_after":7e3}`, 0},
		{"huge", `{"retry_after":99999999999999999999}`, Longest},
		{"too huge", `{"retry_after":999999999999999999999}`, 0},
		{"other kinds", `{"retry_after":[7],"parameters":7,"retryAfter":{"a":7},"policyName":{},"extensions":{"cost":[]},"data":[]}`, 0},
		{"null", `null`, 0},
		{"longer than is read", `{"a":"` + strings.Repeat("x", maxBody) + `","retry_after":7}`, 0},
		{"deep", strings.Repeat("[", maxBody), 0},
	} {
		if got := answered(429, date, c.body); !got.Throttled || got.Wait != c.want || got.Capped != (c.want == Longest) {
			t.Errorf("%s: 429 with body %.90q: got %+v, want throttled for %s", c.who, c.body, got, c.want)
		}
	}
}

func TestAForbiddenCallIsARefusalByAWord(t *testing.T) {
	for body, want := range map[string]bool{
		`{"message":"You have exceeded a secondary rate limit. Please wait"}`:   true,
		`{"message":"API rate limit exceeded for user ID 1."}`:                  true,
		`{"message":"API rate limit already exceeded for user ID 1."}`:          true,
		`{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`:                 true,
		`{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}`:             true,
		`{"error":{"errors":[{"reason":"quotaExceeded"}]}}`:                     true,
		`{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`:                true,
		`[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests …"}]`:  true,
		`{"errors":[{"type":"RATE_LIMITED"}]}`:                                  true,
		`{"errors":[{"extensions":{"code":"throttled"}}]}`:                      true,
		strings.Repeat(" ", maxBody-9) + "THROTTLED":                            true,
		strings.Repeat(" ", maxBody-8) + "THROTTLED":                            false,
		"\xff\x00THROTTLED\xff":                                                 true,
		"not_throttled, but throttled":                                          true,
		`{"error":{"errors":[{"reason":"storageQuotaExceeded"}]}}`:              false,
		`{"error":{"errors":[{"reason":"quotaExceededForever"}]}}`:              false,
		`{"error":"UNTHROTTLED, NOT_THROTTLED, THROTTLED_2"}`:                   false,
		`{"error":{"errors":[{"domain":"global","reason":"domainPolicy"}]}}`:    false,
		`{"ok":false,"error_code":403,"description":"bot was blocked by user"}`: false,
		``: false,
	} {
		if got := answered(403, "", body); got.Throttled != want {
			t.Errorf("403 with body %.60q: got %+v, want throttled: %t", strings.TrimSpace(body), got, want)
		}
	}
}

// A job that was done must not run again.
func TestADoneCallIsARefusalOnlyByTheWordInItsPlace(t *testing.T) {
	for body, want := range map[string]bool{
		`{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}`:                       true,
		`{"data":null,"errors":[{"extensions":{"code":"THROTTLED"}}]}`:                                 true,
		`{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for user ID 1"}]}`:       true,
		`{"errors":[{"type":"RATE_LIMIT","message":"API rate limit already exceeded for user ID 1"}]}`: true,
		`{"errors":[{"message":"You have exceeded a secondary rate limit"}]}`:                          true,
		`{"errors":[{"message":"Throttled"}]}`:                                                         true,
		`{"errors":[{"message":"other"},{"type":"RATE_LIMITED","path":null}]}`:                         true,
		`{"ok":false,"error":"ratelimited"}`:                                                           true,
		`{"ok":false,"error":"rate_limited"}`:                                                          true,

		`{"data":{"issue":{}},"errors":[{"extensions":{"code":"THROTTLED"}}]}`:                    false,
		`{"data":null,"errors":[{"type":"RATE_LIMITED","path":["add"]}]}`:                         false,
		`{"errors":[{"type":"RATE_LIMITED"},{"message":"other","path":["add"]}]}`:                 false,
		`{"data":{"addComment":{"body":"rate limit exceeded, THROTTLED, RATE_LIMITED"}}}`:         false,
		`{"errors":[{"message":"title \"THROTTLED\" is taken","extensions":{"code":"INVALID"}}]}`: false,
		`{"errors":[]}`:                           false,
		`{"errors":{"type":"RATE_LIMITED"}}`:      false,
		`{"error":{"type":"RATE_LIMITED"}}`:       false,
		`{"message":"secondary rate limit"}`:      false,
		`{"ok":true,"error":"ratelimited"}`:       false,
		`{"ok":false,"error":"is_archived"}`:      false,
		`{"ok":"false","error":"ratelimited"}`:    false,
		`{"error":"ratelimited"}`:                 false,
		`[{"ErrorCode":429,"Message":"limited"}]`: false,
		`{"retry_after":7}`:                       false,
		`"THROTTLED"`:                             false,
		`THROTTLED`:                               false,
		``:                                        false,
		`{"errors":[{"message":"Throttled"}]`:     false,
	} {
		for _, status := range []int{200, 201, 207, 299} {
			if got := answered(status, "Retry-After: 5", body); got.Throttled != want || want && got.Wait != 5*time.Second {
				t.Errorf("status %d with body %q: got %+v, want throttled for 5s: %t", status, body, got, want)
			}
		}
	}
}

func TestWhatADayOrMoneyLimitsPausesLong(t *testing.T) {
	for _, c := range []struct {
		status          int
		header, body    string
		daily, hopeless bool
		want            time.Duration
	}{
		{429, "", `{"policyName":"DAILY"}`, true, false, Long},
		{429, "Retry-After: 7200", `{"policyName":"DAILY"}`, true, false, 2 * time.Hour},
		{429, "Retry-After: 60", `{"policyName":"DAILY"}`, true, false, time.Minute},
		{429, "X-HubSpot-RateLimit-Daily-Remaining: 0", "", true, false, Long},
		{403, "X-HubSpot-RateLimit-Daily-Remaining: 0", "", true, false, Long},
		{403, "", `{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`, true, false, Long},
		{403, "", `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`, true, false, Long},
		{403, "", `[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests Limit exceeded."}]`, true, false, Long},
		{403, "", `[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"ConcurrentRequests (Concurrent API Requests) Limit exceeded."}]`, false, false, 0},
		{429, "", `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["daily"]}`, true, false, Long},
		{429, "", `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["burst", 3]}`, false, false, 0},
		{429, "", `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}`, false, true, Long},
		{429, "", `{"error":{"code":"insufficient_quota"}}`, false, true, Long},
		{429, "Retry-After: 1", `{"error":{"code":"insufficient_quota"}}`, false, true, Long},
		{429, "Retry-After: 7200", `{"error":{"code":"insufficient_quota"}}`, false, true, 2 * time.Hour},
		{429, "", `{"error":{"type":"credit_balance_exhausted"}}`, false, true, Long},
		{429, "", `{"error":{"details":{"error_code":"enforced_spend_limit_reached"}}}`, false, true, Long},
		{429, "", `{"error":{"code":"rate_limit_exceeded"}}`, false, false, 0},
	} {
		got := answered(c.status, c.header, c.body)
		if !got.Throttled || got.Daily != c.daily || got.Hopeless != c.hopeless || got.Wait != c.want {
			t.Errorf("status %d, %q, body %q: got %+v, want throttled for %s, daily %t, hopeless %t",
				c.status, c.header, c.body, got, c.want, c.daily, c.hopeless)
		}
	}
}

func TestADoneQueryThatSpentTheLastPointRests(t *testing.T) {
	got := answered(200, date, `{"data":{"rateLimit":{"cost":1,"remaining":0,"resetAt":"2026-01-01T00:10:00Z"}}}`)
	if got.Throttled || got.Rest != 10*time.Minute {
		t.Errorf("got %+v, want a rest of 10m0s", got)
	}
}
