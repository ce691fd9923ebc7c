package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// Each testdata/FAULT.toml has all that its name says wrong with it, and its report in testdata/FAULT.txt.
func TestEveryFaultOfAFileIsInOneReport(t *testing.T) {
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v, error %v; want some", files, err)
	}
	for _, path := range files {
		_, err := Load(path, env("MAIL", "mail", "SECRET", "hunter2"))
		if err == nil {
			t.Errorf("%s: got no fault, want some", path)
			continue
		}
		golden(t, strings.TrimSuffix(path, ".toml")+".txt", err.Error()+"\n")
	}
}

// CF02: the library alone takes one of the two at random.
func TestTheReportIsTheSameEveryTime(t *testing.T) {
	const path = "testdata/case_does_not_make_another_key.toml"
	_, first := Load(path, env())
	for range 200 {
		if _, err := Load(path, env()); err == nil || err.Error() != first.Error() {
			t.Fatalf("got %v, want %v", err, first)
		}
	}
}

func TestSyntaxFaultsQuoteTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"Features: x":                          "queues.toml:2: is not TOML: in `Features: x`: expected '.' or '=', but got ':' instead",
		"max_jobs_per_second = 1/3":            "queues.toml:2: is not TOML: in `max_jobs_per_second = 1/3`: expected a top-level item to end with a newline, comment, or EOF, but got '/' instead",
		"max_jobs_per_second = 0,2":            "queues.toml:2: is not TOML: in `max_jobs_per_second = 0,2`: expected a top-level item to end with a newline, comment, or EOF, but got ',' instead",
		"max_jobs_per_second = .5":             "queues.toml:2: is not TOML: in `max_jobs_per_second = .5`: floats must start with a digit, not '.'",
		"max_jobs_per_second = 1e400":          "queues.toml:2: is not TOML: in `max_jobs_per_second = 1e400`: 1e400 is out of range for float64",
		"quotas = [5000/1h]":                   "queues.toml:2: is not TOML: in `quotas = [5000/1h]`: expected a comma (',') or array terminator (']'), but got '/'",
		"concurrency = 9223372036854775808":    "queues.toml:2: is not TOML: in `concurrency = 9223372036854775808`: 9223372036854775808 is out of range for int64",
		"[":                                    "queues.toml:2: is not TOML: in `[`: expected '.' or ']' to end table name, but got '\\n' instead",
		"lease =":                              "queues.toml:2: is not TOML: in `lease =`: expected value but found '\\n' instead",
		"[[worker]]\nqueue = 'a'\nqueue = 'b'": "queues.toml:4: is not TOML: in `queue = '…`: Key 'worker.queue' has already been defined.",
		"[[worker]]\n[worker]":                 "queues.toml:3: is not TOML: in `[worker]`: Key 'worker' has already been defined.",
		"lease = \"30s":                        "queues.toml:2: is not TOML: in `lease = \"…`: strings cannot contain newlines",
		"[" + strings.Repeat("a.", 20) + "a]":  "queues.toml:2: has a key that is nested too deep or is too long, must be one of the keys of queues.toml",
	} {
		if got := report(t, "# one\n"+text+"\n"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestSyntaxFaultsShowNothingOfASecret(t *testing.T) {
	for _, text := range []string{
		`database_url = "postgres://app:hunter2@db/app`,
		`database_url = postgres://app:hunter2@db/app`,
		`database_url = "postgres://app:hunter2\xzz@db/app"`,
		"database_url = \"\"\"\npostgres://app:\\\nhunter2\\xzz\"\"\"",
		"command = [\"\"\"\nhunter2 \\q \"\"\"]",
		"command = ['''\nhunter2''' x]",
		"command = [\"\"\"\nhunter2",
		`password = hunter2`,
		`"hunter2@db`,
		`lease = hunter2@x`,
		`lease = "hunter2\xzz"`,
		`lease = ${A:-hunter2}`,
		`api_key = hunter2`,
		`postgres://app:hunter2=@db`,
	} {
		got := report(t, text)
		if got == "" || strings.Contains(got, "hunter") {
			t.Errorf("%s: got %q, want a fault without the secret", text, got)
		}
	}
}

// CF05: a value of the environment is a value, whatever is in it.
func TestVariables(t *testing.T) {
	file := mustLoad(t, `
schema = "${A}$$pa$USERword${A:-x}${B"
[[worker]]
queue = "a" # ${UNSET}
command = ["${EVIL}", "${EVIL}${A}"]
`, "A", "${B}", "B", "never", "EVIL", "\"\n[[worker]]\nqueue = \"b\"")
	if got, want := file.Schema, "${B}$$pa$USERword${A:-x}${B"; got != want {
		t.Errorf("schema: got %q, want %q", got, want)
	}
	if got, want := fmt.Sprintf("%q", file.Workers[0].Command), `["\"\n[[worker]]\nqueue = \"b\"" "\"\n[[worker]]\nqueue = \"b\"${B}"]`; got != want {
		t.Errorf("command: got %s, want %s", got, want)
	}
	if got := len(file.Workers); got != 1 {
		t.Errorf("workers: got %d, want 1", got)
	}
}

func TestFaultsShowNothingOfTheEnvironment(t *testing.T) {
	text := "database_url = 'x${S}'\nlease = '${S}'\nlog_format = '${S}'\n" +
		"[[worker]]\nqueue = '${S}'\nheadroom = '${S}'\njobs = ['${N}']\n[[worker]]\nqueue = '${Q}'\n[[worker]]\nqueue = '${Q}'\n"
	got := report(t, text, "S", "hunter2 x", "N", "hunter2\n", "Q", "hunter2")
	if strings.Count(got, "\n") != 6 || strings.Contains(got, "hunter") {
		t.Errorf("got %s\nwant 7 faults without a value", got)
	}
}
