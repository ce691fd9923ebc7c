package config

import (
	"slices"
	"strings"
)

// env tells which names in the env of w, filled from t, no worker can have for itself. A fault shows a name as the
// file has it: what a variable put in its place may be a secret.
func (c *checker) env(t table, w *Worker) {
	raw, _ := t.tree["env"].([]any)
	if len(raw) != len(w.Env) {
		return // at fault, and told
	}
	for i, name := range w.Env {
		fault := func(which string) {
			c.fault(t.lines.key("env").element(i).line, t.label+"env", "has %s, which %s", show(raw[i], false), which)
		}
		_, set := c.getenv(name)
		switch {
		case name == "QUEUEKEEPER_CHILD", strings.HasPrefix(name, "JOB_"):
			fault("is set for each process or job, must be another name")
		case name == "NOTIFY_SOCKET", strings.HasPrefix(name, "WATCHDOG_"), strings.HasPrefix(name, "LISTEN_"):
			fault("the process manager sets for the supervisor alone, must be another name")
		case slices.Contains(w.Env[:i], name):
			fault("it has already, must be there once")
		case !set:
			fault("is not set in the environment, must be set")
		}
	}
}
