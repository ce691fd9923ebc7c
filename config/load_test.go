package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// env is the environment of a test: DATABASE_URL and the given pairs.
func env(pairs ...string) func(string) (string, bool) {
	vars := map[string]string{"DATABASE_URL": "postgres://localhost/app"}
	for i := 0; i < len(pairs); i += 2 {
		vars[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// load is Load of a file queues.toml with that text.
func load(t *testing.T, text string, pairs ...string) (File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "queues.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, env(pairs...))
}

func mustLoad(t *testing.T, text string, pairs ...string) File {
	t.Helper()
	file, err := load(t, text, pairs...)
	if err != nil {
		t.Fatalf("load:\n%s\ngot %v, want no faults", text, err)
	}
	return file
}

// report is the faults of a text, with the folder of the file taken away.
func report(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	_, err := load(t, text, pairs...)
	if err == nil {
		return ""
	}
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("got an error of type %T, want Faults", err)
	}
	return strings.ReplaceAll(err.Error(), filepath.Dir(faults[0].Path)+"/", "")
}

func TestLeftOutKeysGetTheirDefaults(t *testing.T) {
	file := mustLoad(t, "[[worker]]\nqueue = \"a\"\n")
	dir := filepath.Dir(file.Path)
	want := File{
		Path: file.Path, Dir: dir, DatabaseURL: "postgres://localhost/app",
		Lease: 30 * time.Second, ShutdownTimeout: 25 * time.Second, LogFormat: "text",
		Workers: []Worker{{
			Queue: "a", Path: file.Path, Line: 2, Dir: dir, Burst: 1, Headroom: 0.01, PauseScope: "queue", Order: "due", Concurrency: 1,
			PollInterval: 10 * time.Second, Timeout: time.Minute, KillAfter: 5 * time.Second, MaxAttempts: 20,
		}},
	}
	if !reflect.DeepEqual(file, want) {
		t.Errorf("got %+v\nwant %+v", file, want)
	}
}

func TestAWorkerWinsOverDefaultsAndAJobOverItsWorker(t *testing.T) {
	file := mustLoad(t, `
lease = "1m30s"
[defaults]
timeout = "1d"
command = ["a"]
max_jobs_per_second = 2
[defaults.job.J]
max_attempts = 3
command = ["./x"]
[[worker]]
queue = "a"
[worker.job.J]
timeout = "5s"
[[worker]]
queue = "b.c-d_1"
timeout = "100ms"
jobs = ["K"]
max_jobs_per_second = 0.3333333333
headroom = "2.5%"
[worker.job.K]
command = ["y", "z"]
`[1:])
	got := []any{
		file.Lease,
		file.Workers[0].Timeout, file.Workers[0].Command, file.Workers[0].CommandLine, file.Workers[0].MaxJobsPerSecond, file.Workers[0].Job,
		file.Workers[1].Timeout, file.Workers[1].Jobs, file.Workers[1].MaxJobsPerSecond, file.Workers[1].Headroom, file.Workers[1].Line, file.Workers[1].Job,
	}
	inherited := Job{MaxAttempts: 3, Command: []string{"./x"}, CommandLine: 8}
	own := inherited
	own.Timeout = 5 * time.Second
	want := []any{
		90 * time.Second,
		24 * time.Hour, []string{"a"}, 4, 2.0, map[string]Job{"J": own},
		100 * time.Millisecond, []string{"K"}, 0.3333333333, 0.025, 14, map[string]Job{"J": inherited, "K": {Command: []string{"y", "z"}, CommandLine: 20}},
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("value %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func TestQuotasOfDefaultsHoldUntilAWorkerHasItsOwnAndLanesAreOfOneWorker(t *testing.T) {
	file := mustLoad(t, `
[defaults]
quotas = ["5000/1h", "100/10s"]
max_jobs_per_second_per_lane = 1
pause_scope = "lane"
order = "strict"
[[worker]]
queue = "a"
[worker.lanes]
urgent = 5
"${MAIL}" = 2
[[worker]]
queue = "b"
quotas = ["${MAIL}"]
max_jobs_per_second_per_lane = 0.5
pause_scope = "queue"
order = "due"
[[worker]]
queue = "c"
quotas = []
`, "MAIL", "300/1m30s")
	a, b := file.Workers[0], file.Workers[1]
	got := []any{a.Quotas, a.PerLane, a.Lanes, a.PauseScope, a.Order, b.Quotas, b.PerLane, b.Lanes, b.PauseScope, b.Order,
		file.Workers[2].Quotas}
	want := []any{
		[]Quota{{5000, time.Hour}, {100, 10 * time.Second}}, 1.0, map[string]int{"urgent": 5, "${MAIL}": 2}, "lane", "strict",
		[]Quota{{300, 90 * time.Second}}, 0.5, map[string]int(nil), "queue", "due",
		[]Quota(nil), // as where there are none: a reload that only says so changes nothing
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMemoryIsInBytesAndEnvAndUserAreOfOneWorker(t *testing.T) {
	file := mustLoad(t, `
[defaults]
memory_limit = "256MB"
nice = 5
[[worker]]
queue = "a"
env = ["A_TOKEN", "DATABASE_URL"]
user = "${WHO}"
[[worker]]
queue = "b"
memory_limit = "2GB"
nice = 0
`, "A_TOKEN", "", "WHO", "1000")
	a, b := file.Workers[0], file.Workers[1]
	got := []any{a.MemoryLimit, a.Nice, a.Env, a.User, b.MemoryLimit, b.Nice, b.Env, b.User}
	want := []any{int64(256 << 20), 5, []string{"A_TOKEN", "DATABASE_URL"}, "1000", int64(2 << 30), 0, []string(nil), ""}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTextForms(t *testing.T) {
	plain := "# α\nlease = \"1m\"\n[[worker]]\nqueue = \"a\"\njobs = [\n\"x\",\n\"y\"]\n"
	crlf := strings.ReplaceAll(plain, "\n", "\r\n")
	want := mustLoad(t, plain)
	for name, text := range map[string]string{
		"byte order mark":  "\ufeff" + plain,
		"CRLF":             crlf,
		"mixed":            strings.Replace(plain, "\n", "\r\n", 2),
		"no final newline": strings.TrimSuffix(plain, "\n"),
		"mark and CRLF":    "\ufeff" + crlf,
	} {
		got := mustLoad(t, text)
		got.Path, got.Dir = want.Path, want.Dir
		got.Workers[0].Path, got.Workers[0].Dir = want.Path, want.Dir
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"CR only":      {strings.ReplaceAll(plain, "\n", "\r"), "queues.toml:1: has a carriage return (CR) alone, lines must end with LF or CRLF"},
		"UTF-16":       {"\xff\xfe[\x00[\x00", "queues.toml:1: is UTF-16 text, must be UTF-8"},
		"trailing NUL": {plain + "\x00", "queues.toml:8: has a NUL byte, must be UTF-8 text"},
		"a bell":       {"lease = \"30s\"\n\a\n", "queues.toml:2: has the control character 0x07, must be text"},
		"Latin-1":      {plain + "# \xe9\n", "queues.toml:8: has the byte 0xe9, which is not UTF-8; must be UTF-8 text"},
		"CRLF and a fault on line 40": {strings.Repeat("\r\n", 39) + "lease = 1/3\r\n",
			"queues.toml:40: is not TOML: in `lease = 1/3`: expected a top-level item to end with a newline, comment, or EOF, but got '/' instead"},
	} {
		if got := report(t, c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// CF07: nothing to work is never a silent program, and no kind of file makes it hang.
func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("empty", "")
	write("comments", "# nothing\n\n# here\n")
	write("list", "worker = []\n")
	write("large", "")
	write("file", "")
	if err := errors.Join(os.Truncate(at("large"), 200<<20), syscall.Mkfifo(at("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		at("empty"):    "no workers defined in " + at("empty"),
		at("comments"): "no workers defined in " + at("comments"),
		at("list"):     "no workers defined in " + at("list"),
		at("large"):    "read " + at("large") + ": is 209715200 bytes long, must be at most 1048576",
		at("fifo"):     "read " + at("fifo") + ": is a pipe, must be a regular file",
		dir:            "read " + dir + ": is a directory, must be a regular file",
		"/dev/null":    "read /dev/null: is a device, must be a regular file",
		at("none"):     "open " + at("none") + ": no such file or directory (queuekeeper init prints one to start from)",
		at("file/x"):   "open " + at("file/x") + ": not a directory",
	} {
		_, err := Load(path, env())
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAFileWithoutReadPermissionIsToldWithTheReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queues.toml")
	if err := os.WriteFile(path, nil, 0o000); err != nil {
		t.Fatal(err)
	}
	want := "open " + path + ": permission denied"
	if os.Geteuid() == 0 { // whom no mode stops
		want = "no workers defined in " + path
	}
	if _, err := Load(path, env()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDirIsAbsoluteForARelativePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "q.toml"), []byte(Sample()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	file, err := Load("q.toml", env())
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(file.Dir) || file.Workers[0].Dir != file.Dir || file.Path != "q.toml" {
		t.Errorf("got path %s, dir %s, worker's dir %s; want q.toml and twice the absolute folder", file.Path, file.Dir, file.Workers[0].Dir)
	}
}

// A key that was added at the end of a worker, below its lanes, is a lane to TOML: without the fault it would limit nothing.
func TestNoKeyOfAWorkerIsALane(t *testing.T) {
	for _, name := range append(names(workerKeys), "job") {
		got := report(t, "[[worker]]\nqueue = 'a'\n[worker.lanes]\nurgent = 5\n"+name+" = 1\n")
		want := "queues.toml:5: worker.a.lanes." + name + ": is a lane that is called like a key of [[worker]], must stand above " +
			"[worker.lanes] if it is meant to be that key; a lane of that name cannot have a weight"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
