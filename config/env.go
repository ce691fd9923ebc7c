package config

import (
	"fmt"
	"slices"
	"strings"
)

// CheckEnv tells which names in the env of a worker are not set. That is not in Load: whoever enqueues a job or looks at
// the queues needs none of their secrets.
func (f File) CheckEnv(getenv func(string) (string, bool)) Faults {
	var faults Faults
	for _, w := range f.Workers {
		for _, name := range w.Env {
			if _, set := getenv(name); !set {
				text := fmt.Sprintf("has %q, which is not set in the environment, must be set", name)
				faults = append(faults, Fault{Path: f.Path, Line: w.EnvLine, Key: workerTable + "." + w.Queue + ".env", Text: text})
			}
		}
	}
	return faults
}

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
		switch {
		case name == "QUEUEKEEPER_CHILD", strings.HasPrefix(name, "JOB_"):
			fault("is set for each process or job, must be another name")
		case name == "NOTIFY_SOCKET", strings.HasPrefix(name, "WATCHDOG_"), strings.HasPrefix(name, "LISTEN_"):
			fault("the process manager sets for the supervisor alone, must be another name")
		case slices.Contains(w.Env[:i], name):
			fault("it has already, must be there once")
		}
	}
}
