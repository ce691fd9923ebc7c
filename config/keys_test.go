package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// keyTable is the part of docs/queues.toml.md that comes from the keys.
func keyTable() string {
	var b strings.Builder
	section := func(title string, keys []key) {
		fmt.Fprintf(&b, "\n## %s\n\n| key | meaning | must be | left out |\n|---|---|---|---|\n", title)
		for _, k := range keys {
			out := k.without
			if k.def != nil {
				out = "`" + show(k.def, false) + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, k.meaning, k.kind.must(), out)
		}
	}
	section("At the top of the file", topKeys)
	own := names(only(func(k key) bool { return k.own }))
	section("In a [[worker]]; all but "+strings.Join(own, ", ")+" also in [defaults]", workerKeys)
	fmt.Fprintf(&b, "\n`[worker.job.NAME]` (and `[defaults.job.NAME]`) set %s for the jobs of one name.\n"+
		"A key left out there is as in the worker.\n", strings.Join(names(jobKeys()), ", "))
	return b.String()
}

func TestDocsListEveryKey(t *testing.T) {
	const path = "../docs/queues.toml.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)(<!-- keys: .*? -->\n).*(<!-- /keys -->)`)
	if !part.Match(page) {
		t.Fatalf("%s: got no place for the keys, want the two comments around it", path)
	}
	golden(t, path, part.ReplaceAllStringFunc(string(page), func(old string) string {
		sub := part.FindStringSubmatch(old)
		return sub[1] + keyTable() + "\n" + sub[2]
	}))
}

func TestSampleIsSoundAndShowsEveryKeyAtItsDefault(t *testing.T) {
	file := mustLoad(t, Sample())
	if len(file.Workers) != 1 {
		t.Errorf("got %d workers, want 1", len(file.Workers))
	}
	for _, k := range append(topKeys, workerKeys...) {
		form := k.name + ` = (.*?)(  +#.*)?$`
		if _, isTable := k.kind.(weights); isTable {
			form = `(\[worker\.` + k.name + `\])$`
		}
		line := regexp.MustCompile(`(?m)^(# )?` + form).FindStringSubmatch(Sample())
		switch {
		case line == nil:
			t.Errorf("got no %s in the sample, want one", k.name)
		case k.def != nil && line[2] != show(k.def, false):
			t.Errorf("%s: got %s in the sample, want its default %s", k.name, line[2], show(k.def, false))
		}
	}
	uncommented := regexp.MustCompile(`(?m)^# (\[|[a-z_]+ = )`).ReplaceAllString(Sample(), "$1")
	mustLoad(t, uncommented, "HELLO_TOKEN", "x")
}

func TestDefaultsAreWithinTheirBounds(t *testing.T) {
	for _, k := range append(topKeys, workerKeys...) {
		if k.def == nil || k.secret {
			continue
		}
		if _, err := k.kind.read(k.def); err != nil {
			t.Errorf("%s: got default %v, want %s", k.name, k.def, k.kind.must())
		}
	}
}

func TestBoundsAreIncluded(t *testing.T) {
	for _, values := range []string{
		`timeout = "31d"`, `timeout = "100ms"`, `timeout = "743h59m60s"`, `headroom = "0%"`, `headroom = "50%"`, `max_attempts = 1_000_000`,
		`burst = 1000`, `concurrency = 1000`, `max_jobs_per_second = 0.001`, `max_jobs_per_second = 10000`, `max_jobs_per_second = 2.5`,
		`jobs = ["` + strings.Repeat("x", 255) + `"]`, `memory_limit = "16MB"`, `memory_limit = "16384KB"`, `memory_limit = "1024GB"`, `nice = 0`, `nice = 19`,
		`quotas = ["1/1s"]`, `quotas = ["1000000000/31d"]`, `quotas = ["1/1s", "1/1001ms", "1/1m", "1/1h"]`, `quotas = ["5/0.5m"]`, `quotas = []`,
		`max_jobs_per_second_per_lane = 0.001`, `max_jobs_per_second_per_lane = 10000`, `lanes.a = 1`, `lanes = {a = 1000}`, `lanes = {}`,
		`lanes."` + strings.Repeat("x", 255) + `" = 5`, `pause_scope = "lane"`, `order = "strict"`, manyLanes(1000),
		`lanes = {Timeout = 5, " timeout" = 5, jobs_of_ann = 5, default = 5, "[job]" = 5}`,
	} {
		mustLoad(t, "[[worker]]\nqueue = 'a'\n"+values)
	}
	for _, values := range []string{
		`timeout = "31d1ms"`, `timeout = "99ms"`, `timeout = "1e3s"`, `timeout = "99999999999999999999d"`, `timeout = "106751d"`, `timeout = "1us"`,
		`headroom = "50.1%"`, `headroom = "-1%"`, `max_jobs_per_second = 0.0009`, `max_jobs_per_second = 10000.1`,
		`jobs = ["` + strings.Repeat("x", 256) + `"]`, `memory_limit = "16383KB"`, `memory_limit = "1025GB"`, `memory_limit = "99999999999999999999GB"`,
		`memory_limit = 268435456`, `memory_limit = "256"`, `memory_limit = "256mb"`, `memory_limit = "1.5GB"`, `nice = -1`, `nice = 20`,
		`quotas = ["0/1s"]`, `quotas = ["1000000001/1s"]`, `quotas = ["99999999999999999999/1s"]`, `quotas = ["1/999ms"]`, `quotas = ["1/31d1ms"]`,
		`quotas = ["1/1s", "1/2s", "1/3s", "1/4s", "1/5s"]`, `max_jobs_per_second_per_lane = 0.0009`, `max_jobs_per_second_per_lane = nan`,
		`max_jobs_per_second_per_lane = 10000.1`, `lanes.a = 0`, `lanes.a = 1001`, `lanes.a = 1.0`, `lanes."" = 1`,
		`lanes."` + strings.Repeat("x", 256) + `" = 5`, manyLanes(1001), `pause_scope = "Lane"`, `order = "fifo"`,
	} {
		if got := report(t, "[[worker]]\nqueue = 'a'\n"+values); !strings.HasPrefix(got, "queues.toml:3: worker.a.") {
			t.Errorf("%s: got %q, want one fault at line 3", values, got)
		}
	}
}

func manyLanes(n int) string {
	text := make([]string, n)
	for i := range text {
		text[i] = fmt.Sprintf("%d = %d", i, i%1000+1)
	}
	return "lanes = {" + strings.Join(text, ", ") + "}"
}
