package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// unknown tells of the keys of t that nobody knows.
func (c *checker) unknown(t table) {
	known := append(names(t.keys), t.tables...)
	for _, name := range slices.Sorted(maps.Keys(t.tree)) {
		isKnown := slices.ContainsFunc(known, func(k string) bool { return strings.Trim(k, "[]") == name })
		if !isKnown {
			c.fault(t.lines.key(name).line, t.label+showKey(name), "is not a key of %s, %s", t.name, meant(name, known))
		}
	}
}

// meant is how an unknown name may have been meant: as a key of another table, as the nearest of those known
// here, else as any of these.
func meant(name string, known []string) string {
	for _, other := range []struct {
		where string
		keys  []key
	}{{"at the top of the file", topKeys}, {"in [defaults] or a [[worker]]", defaultsKeys()}, {"in a [[worker]]", workerKeys}} {
		if slices.Contains(names(other.keys), name) {
			return "must be " + other.where
		}
	}
	return suggest(name, known)
}

func names(keys []key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// elsewhere is what other systems call our keys.
var elsewhere = map[string]string{
	"rate": "max_jobs_per_second", "rates": "max_jobs_per_second", "limit": "max_jobs_per_second",
	"rate_limit": "max_jobs_per_second", "threads": "concurrency", "workers": "concurrency", "pool": "concurrency",
	"retries": "max_attempts", "max_retries": "max_attempts", "attempts": "max_attempts", "name": "queue",
	"grace": "shutdown_timeout", "polling_interval": "poll_interval", "cmd": "command", "url": "database_url",
	"memory": "memory_limit", "max_memory": "memory_limit", "environment": "env", "secrets": "env", "uid": "user", "priority": "nice",
	"windows": "quotas", "rate_per_lane": "max_jobs_per_second_per_lane", "weights": "lanes", "scope": "pause_scope", "fifo": "order",
}

// suggest is the nearest of known if one is near, else all of them.
func suggest(name string, known []string) string {
	if ours := elsewhere[name]; slices.Contains(known, ours) {
		return fmt.Sprintf("did you mean %s?", ours)
	}
	if nearest := nearest(name, known); nearest != "" {
		return fmt.Sprintf("did you mean %s?", nearest)
	}
	return "must be one of " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// nearest is "" if none is near: a third of a name may be wrong. Case, blanks and dashes do not count, so
// that Burst and "burst " are burst.
func nearest(name string, known []string) string {
	const longest = 64 // the distance takes time that grows with the product of the lengths
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
	if len(name) > longest {
		return ""
	}
	best, least := "", longest
	for _, candidate := range known {
		bare := strings.ToLower(strings.Trim(candidate, "[]"))
		d := levenshtein.Distance(name, bare, nil)
		if d < least && d <= max(1, len(bare)/3) {
			best, least = candidate, d
		}
	}
	return best
}
