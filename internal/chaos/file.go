package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What the file says of all queues.
const (
	lease           = 10 * time.Second
	shutdownTimeout = 10 * time.Second
)

// setting is what changes of a queue in the file.
type setting struct{ removed, otherTimeout, otherHeadroom bool }

// change changes one thing, and says which.
func (s *setting) change(pick int) string {
	switch pick % 4 {
	case 0:
		s.removed = !s.removed
		return fmt.Sprintf("removed: %t", s.removed)
	case 1:
		s.otherHeadroom = !s.otherHeadroom
		return "has another limit"
	default:
		s.otherTimeout = !s.otherTimeout
		return "has another timeout"
	}
}

func (r *round) file() string { return filepath.Join(r.folder, "queues.toml") }

// writeFile puts the file in place at once: whoever reads it meanwhile finds the old one.
func (r *round) writeFile() error {
	var text strings.Builder
	fmt.Fprintf(&text, "lease = %q\nshutdown_timeout = %q\n[defaults]\nkill_after = \"1s\"\n", lease, shutdownTimeout)
	for _, q := range r.queues {
		if !r.settings[q.name].removed {
			text.WriteString(q.toml(r.settings[q.name], r.chaos.self))
		}
	}
	next := r.file() + ".new"
	if err := os.WriteFile(next, []byte(text.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(next, r.file())
}

func (q queue) toml(s setting, self string) string {
	timeout, headroom := "1m", "1%"
	if s.otherTimeout {
		timeout = "2m"
	}
	if s.otherHeadroom {
		headroom = "2%"
	}
	text := fmt.Sprintf("[[worker]]\nqueue = %q\nconcurrency = %d\ntimeout = %q\nheadroom = %q\n", q.name, q.concurrency, timeout, headroom)
	if q.perSecond > 0 {
		text += fmt.Sprintf("max_jobs_per_second = %g\nburst = %d\n", q.perSecond, q.burst)
	}
	if q.quota > 0 {
		text += fmt.Sprintf("quotas = [\"%d/%s\"]\n", q.quota, quotaWindow)
	}
	if q.perLane > 0 {
		text += fmt.Sprintf("max_jobs_per_second_per_lane = %g\n", q.perLane)
	}
	if q.strict {
		text += "order = \"strict\"\n"
	}
	if q.command {
		text += fmt.Sprintf("command = [%q, %q]\n", self, workArgument)
	}
	return text
}
