package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/testdb"
)

// Not with the test binary: the race detector would need more memory than any limit.
func TestWhatAWorkerMayUse(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "leaks")
	build := exec.Command("go", "build", "-o", program, "./testdata/leaks")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for claim, test := range map[string]func(*testing.T, string){
		"HandlerBeyondItsMemoryLimitIsNobodyElsesTrouble": testLeak,
		"MemoryLimitHoldsForEachCommandByItself":          testCommands,
		"CommandRunsAsItsUserAndStandsBack":               testUser,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			test(t, program)
		})
	}
}

// runProgram starts a supervisor of another program than the test binary, at the times of a real run.
func (s *site) runProgram(path string) *process {
	s.t.Helper()
	cmd := s.command([]string{"run"})
	cmd.Path = path
	return s.start(cmd)
}

func testLeak(t *testing.T, program string) {
	s := newSite(t, `
[[worker]]
queue = "go"
memory_limit = "64MB"
max_attempts = 2
[[worker]]
queue = "steady"
command = ["true"]
max_jobs_per_second = 2
`)
	leak := s.insert("go", "Leak")
	s.insert("go", "Quick")
	s.exec(`insert into jobs (queue, name) select 'steady', 'Post' from generate_series(1, 6)`)
	p := s.runProgram(program)
	neighbour := p.ready("steady")
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	got := value[string](s, `select format('%s %s', attempts, last_error) from jobs where id = $1`, leak)
	if want := "2 out of memory: memory_limit is 64 MB"; got != want {
		t.Errorf("attempts, last_error: got %q, want %q", got, want)
	}
	if now := p.ready("steady"); now != neighbour {
		t.Errorf("child of the neighbour: got process %d, want %d as before", now, neighbour)
	}
	p.logs(`^fatal error: .*memory`)
	p.stop()
	s.cleanEnd("1 dead, 7 done")
}

func testCommands(t *testing.T, program string) {
	s := newSite(t, `
[defaults]
memory_limit = "64MB"
max_attempts = 1
[[worker]]
queue = "github"
concurrency = 3
command = ["dd", "if=/dev/zero", "of=/dev/null", "count=1", "bs=32M"]
[worker.job.Large]
command = ["sh", "-c", "dd if=/dev/zero of=/dev/null count=1 bs=128M"]
[[worker]]
queue = "go"
memory_limit = "16MB"
[worker.job.Small]
command = ["dd", "if=/dev/zero", "of=/dev/null", "count=1", "bs=8M"]
`)
	s.exec(`insert into jobs (queue, name) select 'github', case n when 3 then 'Large' else 'Small' end from generate_series(1, 6) n`)
	s.exec(`insert into jobs (queue, name) select 'go', case when n > 6 then 'Quick' else 'Small' end from generate_series(1, 200) n`)
	p := s.runProgram(program)
	github, handlers := p.ready("github"), p.ready("go")
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	got := value[string](s, `select last_error from jobs where name = 'Large'`)
	if !strings.HasPrefix(got, "exit status 1: ") || !strings.Contains(got, "memory") {
		t.Errorf("last_error of the large one: got %q, want exit status 1 and a word of the memory", got)
	}
	if now, also := p.ready("github"), p.ready("go"); now != github || also != handlers {
		t.Errorf("children: got processes %d and %d, want %d and %d as before", now, also, github, handlers)
	}
	p.stop()
	s.cleanEnd("1 dead, 205 done")
}

func testUser(t *testing.T, program string) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts children of other users")
	}
	cluster := testdb.Own(t)
	s := siteAt(t, cluster.URL("postgres"), `
[defaults]
command = ["sh", "-c", "(id -un; id -G; echo $HOME $USER; nice; cat /proc/self/autogroup) > $JOB_QUEUE.new && mv $JOB_QUEUE.new $JOB_QUEUE"]
[[worker]]
queue = "nobodys"
user = "nobody"
nice = 7
memory_limit = "64MB"
[[worker]]
queue = "ours"
`)
	// Nobody comes to where the test's database and folder are.
	for path, mode := range map[string]os.FileMode{s.dir: 0o777, filepath.Dir(s.dir): 0o755, s.conn.Config().Host: 0o711} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	p := s.runProgram(program)
	s.insert("nobodys", "Show")
	s.insert("ours", "Show")
	s.allDone()
	groups, err := exec.Command("id", "-G", "nobody").Output()
	if err != nil {
		t.Fatal(err)
	}
	home, err := exec.Command("sh", "-c", "echo ~nobody").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "nobody\n" + string(groups) + strings.TrimSpace(string(home)) + " nobody\n7\n"
	got, group, _ := strings.Cut(s.read("nobodys"), "/autogroup")
	if got != want || group != "" && !strings.Contains(group, " nice 7\n") {
		t.Errorf("command of nobody's queue: got %q, autogroup%q; want %q and nice 7", got, group, want)
	}
	if got := s.read("ours"); !strings.HasPrefix(got, "root\n") || !strings.Contains(got, "\n0\n") {
		t.Errorf("command of the other queue: got %q, want root's and nice 0", got)
	}
	p.stop()
	s.cleanEnd("2 done")
}

// environ is the environment a process was started with, in order, without the mark that tells one life from another.
func environ(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	slices.Sort(env)
	return slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "QUEUEKEEPER_CHILD=") })
}

// The same at every start: the first, after a kill, after a reload.
func TestEachChildAndItsCommandsSeeTheirOwnSecretsOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
env = ["GITHUB_TOKEN"]
command = ["sh", "-c", "env > $JOB_QUEUE.new && mv $JOB_QUEUE.new $JOB_QUEUE"]
[[worker]]
queue = "slack"
env = ["SLACK_TOKEN"]
command = ["sh", "-c", "env > $JOB_QUEUE.new && mv $JOB_QUEUE.new $JOB_QUEUE"]
`)
	p := s.run("GITHUB_TOKEN=ghp_secret", "SLACK_TOKEN=xoxb_secret", "FOO=1")
	own := map[string]string{"github": "GITHUB_TOKEN=ghp_secret", "slack": "SLACK_TOKEN=xoxb_secret"}
	before := map[string][]string{}
	check := func(when string) {
		for _, queue := range []string{"github", "slack"} {
			id := s.insert(queue, "Show")
			s.until(`select state = 'done' from jobs where id = $1`, id)
			child := p.ready(queue)
			env := environ(t, child)
			if before[queue] != nil && !slices.Equal(env, before[queue]) {
				t.Errorf("%s, child of %s: got environment %q, want %q as before", when, queue, env, before[queue])
			}
			before[queue] = env
			for whose, token := range own {
				if got, want := slices.Contains(env, token), whose == queue; got != want {
					t.Errorf("%s, child of %s: got %s there: %v, want %v", when, queue, token, got, want)
				}
				if got, want := strings.Contains(s.read(queue), token+"\n"), whose == queue; got != want {
					t.Errorf("%s, command of %s: got %s there: %v, want %v", when, queue, token, got, want)
				}
			}
			if !slices.Contains(env, "FOO=1") {
				t.Errorf("%s, child of %s: got no FOO, want what no worker lists", when, queue)
			}
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if err != nil || strings.Contains(string(line), "secret") || strings.Contains(string(line), s.url) {
				t.Errorf("%s, child of %s: got the command line %q, %v; want no secret in it", when, queue, line, err)
			}
		}
	}
	killed := func() {
		old := p.ready("github")
		kill(t, old)
		s.until(`select pid <> $1 and supervisor is not null from queues where queue = 'github'`, old)
	}
	check("at first")
	killed()
	check("after a kill")
	p.signal(syscall.SIGHUP)
	p.logs(`file taken on`)
	killed()
	check("after a reload")
	p.stop()
	s.cleanEnd("6 done")
}
