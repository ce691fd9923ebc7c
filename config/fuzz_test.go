package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func seed(f *testing.F) {
	f.Add(Sample())
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) == 0 {
		f.Fatalf("got files %v, error %v; want some", files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{
		"a.\"b\\u0063\".'d e' = [[{x = 1, y.z = []}], \"#]\", '''\n'''''] # c\n[a.q]\n[[a.r.s]]\nt={\n}\n[[a.r.s]]\n[a.r.s.u]",
		"x = \"\"\"\\\"\"\"\\\n\n\"\"\"\"\"\ny = 1979-05-27 07:32:00Z\n\"\" = {\"\"=1,}\n",
		"[worker]\n[worker.job]\n[[worker.job.x]]\n",
	} {
		f.Add(text)
	}
}

// Whatever the text: no panic, an answer at once, the same answer every time, and sound values or faults.
func FuzzLoad(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		getenv := env("A", "${A}")
		file, err := parse("queues.toml", text, getenv)
		if _, again := parse("queues.toml", text, getenv); (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("got %v, then %v; want the same", err, again)
		}
		if err != nil {
			for _, fault := range err.(Faults) {
				if lines := strings.Count(text, "\n") + 1; fault.Line < 0 || fault.Line > lines {
					t.Errorf("got a fault at line %d of %d: %v", fault.Line, lines, fault)
				}
				if strings.ContainsAny(fault.String(), "\n\r") {
					t.Errorf("got a fault of several lines: %q", fault)
				}
			}
			return
		}
		checkSound(t, file)
	})
}

func checkSound(t *testing.T, file File) {
	within := func(what string, got, min, max time.Duration) {
		if got < min || got > max {
			t.Errorf("%s: got %v, want %v to %v", what, got, min, max)
		}
	}
	within("lease", file.Lease, time.Second, time.Hour)
	within("shutdown_timeout", file.ShutdownTimeout, time.Second, time.Hour)
	if len(file.Workers) == 0 {
		t.Error("got no workers, want some")
	}
	queues := map[string]bool{}
	for _, w := range file.Workers {
		within("poll_interval", w.PollInterval, 100*time.Millisecond, 31*day)
		within("timeout", w.Timeout, 100*time.Millisecond, 31*day)
		within("kill_after", w.KillAfter, 100*time.Millisecond, 31*day)
		rate := w.MaxJobsPerSecond == 0 || w.MaxJobsPerSecond >= 0.001 && w.MaxJobsPerSecond <= 10000
		counts := w.Burst >= 1 && w.Burst <= 1000 && w.Concurrency >= 1 && w.Concurrency <= 1000 && w.MaxAttempts >= 1 && w.MaxAttempts <= 1000000
		machine := (w.MemoryLimit == 0 || w.MemoryLimit >= 16<<20 && w.MemoryLimit <= 1<<40) && w.Nice >= 0 && w.Nice <= 19
		if !rate || !counts || !machine || !(w.Headroom >= 0 && w.Headroom <= 0.5) || !queueForm.MatchString(w.Queue) || queues[w.Queue] || w.Line < 1 {
			t.Errorf("got the worker %+v, want one within bounds", w)
		}
		queues[w.Queue] = true
		checkQuotas(t, w.Quotas)
		perLane := w.PerLane == 0 || w.PerLane >= 0.001 && w.PerLane <= 10000
		if !perLane || w.PauseScope != "queue" && w.PauseScope != "lane" || w.Order != "due" && w.Order != "strict" || len(w.Lanes) > 1000 {
			t.Errorf("got the worker %+v, want one within bounds", w)
		}
		for lane, weight := range w.Lanes {
			if lane == "" || len(lane) > 255 || isWorkerKey(lane) || weight < 1 || weight > 1000 {
				t.Errorf("got lane %q of weight %d, want both within bounds", lane, weight)
			}
		}
	}
}

func checkQuotas(t *testing.T, quotas []Quota) {
	t.Helper()
	windows := map[time.Duration]bool{}
	for _, q := range quotas {
		if q.Starts < 1 || q.Starts > 1e9 || q.Window < time.Second || q.Window > 31*day || windows[q.Window] {
			t.Errorf("got quotas %v, want them within bounds, each of its own window", quotas)
		}
		windows[q.Window] = true
	}
	if len(quotas) > 4 {
		t.Errorf("got %d quotas, want 4 at most", len(quotas))
	}
}

// Whatever the text of a quota: a fault, or a quota within bounds whose own text is the same quota.
func FuzzQuota(f *testing.F) {
	for _, text := range []string{
		"5000/1h", "100/10s", "1/1s", "1000000000/31d", "0/1s", "-1/1s", "1/0s", "1/1h30m", "1/1.5s", "1/h", "/1h", "1/", "1//1s", "1/1s/1s",
		"1e3/1s", "1_000/1s", " 1/1s", "1 / 1s", "१/1s", "1/99999999999999999999d", "99999999999999999999/1s", "1/1s\n", "5000/hour", "1/1us",
	} {
		f.Add(text)
	}
	k := quota{1_000_000_000, duration{time.Second, 31 * day}}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := k.read(text)
		if err != nil {
			return
		}
		q := value.(Quota)
		checkQuotas(t, []Quota{q})
		if again, err := k.read(q.String()); err != nil || again != value {
			t.Errorf("%q: got %+v, shown as %q, read back as %+v (error %v); want the same", text, q, q, again, err)
		}
	})
}

// What the library accepts, the index has a line for, key by key.
func FuzzLines(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		text, fault := cleanText(text)
		if fault != nil {
			return
		}
		lines, fault := scan(text)
		if fault != nil {
			return
		}
		tree, fault := decode(text)
		if fault != nil {
			return
		}
		checkLines(t, tree, lines, 1+strings.Count(text, "\n"), "")
	})
}

func checkLines(t *testing.T, value any, n *node, last int, path string) {
	if n.line < 1 || n.line > last {
		t.Fatalf("%s: got line %d, want 1 to %d", path, n.line, last)
	}
	element := func(i int, value any) {
		if i >= len(n.list) {
			t.Fatalf("%s: got %d elements, want more", path, len(n.list))
		}
		checkLines(t, value, n.list[i], last, path+"[]")
	}
	switch v := value.(type) {
	case map[string]any:
		for name, value := range v {
			kid, ok := n.keys[name]
			if !ok {
				t.Fatalf("%s.%q: got no line, want one", path, name)
			}
			checkLines(t, value, kid, last, path+"."+name)
		}
	case []map[string]any:
		for i, value := range v {
			element(i, value)
		}
	case []any:
		for i, value := range v {
			element(i, value)
		}
	}
}
