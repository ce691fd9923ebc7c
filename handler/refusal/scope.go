package refusal

import (
	"net/http"
	"strings"

	"queuekeeper/jobs"
)

// headerScopes is what headers say of whom a refusal is for.
var headerScopes = []struct {
	name, value string
	scope       jobs.Scope
}{
	{"X-RateLimit-Global", "true", jobs.ScopeQueue}, // Discord
	{"X-RateLimit-Scope", "global", jobs.ScopeQueue},
	{"X-RateLimit-Scope", "user", jobs.ScopeLane}, // of one route: a channel, a webhook
	{"X-RateLimit-Scope", "shared", jobs.ScopeLane},
	{"Stripe-Rate-Limited-Reason", "global-rate", jobs.ScopeQueue},
	{"Stripe-Rate-Limited-Reason", "global-concurrency", jobs.ScopeQueue},
	{"Stripe-Rate-Limited-Reason", "endpoint-rate", jobs.ScopeQueue},
	{"Stripe-Rate-Limited-Reason", "endpoint-concurrency", jobs.ScopeQueue},
	{"Stripe-Rate-Limited-Reason", "resource-specific", jobs.ScopeLane},
}

// scope is for whom the refusal is. What says the queue wins: a lane is in it.
func (r *response) scope() jobs.Scope {
	return wider(headerScope(r.header), r.body.scope())
}

func headerScope(header http.Header) (scope jobs.Scope) {
	for _, h := range headerScopes {
		for _, value := range header.Values(h.name) {
			if strings.EqualFold(strings.TrimSpace(value), h.value) {
				scope = wider(scope, h.scope)
			}
		}
	}
	return scope
}

// scope is what the body says: Discord's global, Google's reasons, and the limit that Notion names.
func (b body) scope() (scope jobs.Scope) {
	switch at(b.root, "global") {
	case true:
		scope = jobs.ScopeQueue
	case false:
		scope = jobs.ScopeLane
	}
	for _, w := range limitWords {
		if w.scope != jobs.ScopeOfFile && b.has(w.word) {
			scope = wider(scope, w.scope)
		}
	}
	reason := strings.ToLower(b.text("additional_data", "rate_limit_reason"))
	switch {
	case strings.Contains(reason, "connection"):
		scope = wider(scope, jobs.ScopeQueue)
	case strings.Contains(reason, "workspace"):
		scope = wider(scope, jobs.ScopeLane)
	}
	return scope
}

func wider(a, b jobs.Scope) jobs.Scope {
	if a == jobs.ScopeQueue || b == jobs.ScopeOfFile {
		return a
	}
	return b
}
