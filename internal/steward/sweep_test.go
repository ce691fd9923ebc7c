package steward_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/testdb"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

func TestJobsOfQueuesNobodyServesComeBack(t *testing.T) {
	s := newSite(t)
	s.runningJob("norow")
	s.runningJob("free")
	s.exec(`insert into queues (queue) values ('free')`)
	s.runningJob("expired")
	s.held("expired", os.Getpid(), 0, "-1 s")
	s.runningJob("parked")
	r := s.run(s.file("parked"), quick())
	r.Show(picture(jobs.Child{Queue: "parked", State: jobs.ChildParked}))
	for _, queue := range []string{"norow", "free", "expired", "parked"} {
		s.becomes("pending", state, queue)
		s.is("true", `select supervisor is null and expires_at < now() from queues where queue = $1`, queue)
	}
	s.logs(4, "job recovered: queue=")
	s.logs(1, `job recovered: queue=expired id=3 attempt=1 status=fail error="lease of `)
}

// A sweep that came across a child between two connections would take its jobs from it.
func TestLivingLeasesAndQueuesOfOurOwnChildrenAreLeftAlone(t *testing.T) {
	s := newSite(t)
	me, _ := procs.StartTime(os.Getpid())
	s.held("here", os.Getpid(), me, "1 h")
	s.held("elsewhere", 1, 1, "1 h")
	s.exec(`update queues set host = 'web-2' where queue = 'elsewhere'`)
	children := []jobs.Child{}
	for _, state := range []string{
		jobs.ChildStarting, jobs.ChildReady, jobs.ChildQuiet, jobs.ChildStandingBy, jobs.ChildWaiting, jobs.ChildRestarting, jobs.ChildLeaving,
	} {
		queue := strings.ReplaceAll(state, " ", "-")
		children = append(children, jobs.Child{Queue: queue, State: state})
		s.held(queue, 1, 1, "-1 s")
	}
	s.held("unshown", 1, 1, "-1 s")
	s.exec(`insert into jobs (queue, name, state, epoch) select queue, 'Do', 'running', 1 from queues`)
	s.run(s.file("unshown"), quick()).Show(picture(children...))
	s.swept()
	s.is("null", `select string_agg(queue, ' ') from jobs where state <> 'running' and queue <> 'witness'`)
	s.is("10", `select count(*) from queues where epoch = 1 and supervisor = 'other'`)
}

// The machine of a holder can tell that its process is gone, before the lease runs out. Commands of that process may
// still run, and must not run beside the next attempt.
func TestJobsOfAProcessThatIsGoneComeBackAfterItsCommandsAreKilled(t *testing.T) {
	s := newSite(t)
	pid, started, command := s.dead(wire.Mark("other", 1))
	begun, alive := procs.StartTime(command)
	if !alive {
		t.Fatalf("command %d of the dead holder: got gone, want it alive before the sweep", command)
	}
	s.held("gone", pid, started, "1 h")
	s.runningJob("gone")
	s.run(s.file(), quick())
	s.becomes("pending", state, "gone")
	if !procs.Gone(command, begun) {
		t.Errorf("command %d of the dead holder is alive, want it killed before its job came back", command)
	}
	s.logs(1, `error="process `)
}

// dead returns a process that led a session and is gone, and another of that session that lives on.
func (s *site) dead(mark string) (pid int, started int64, left int) {
	s.Helper()
	cmd := exec.Command("sh", "-c", "sleep 1000 <&- >&- 2>&- & echo $!; read x")
	cmd.Env = append(os.Environ(), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	started, alive := procs.StartTime(cmd.Process.Pid)
	if !alive {
		s.Fatal("the process to be gone has no start time")
	}
	left = number(s.T, out)
	s.Cleanup(func() { _ = syscall.Kill(left, syscall.SIGKILL) })
	in.Close()
	_ = cmd.Wait() // its read found no line
	return cmd.Process.Pid, started, left
}

func number(t *testing.T, r io.Reader) (n int) {
	t.Helper()
	if _, err := fmt.Fscan(r, &n); err != nil {
		t.Fatalf("read a number: %v", err)
	}
	return n
}

func TestTwoStewardsBringEachJobBackOnce(t *testing.T) {
	s := newSite(t)
	for range 2 {
		s.run(s.file(), quick())
	}
	s.exec(`insert into jobs (queue, name, state, attempts, max_attempts, epoch)
		select 'q' || i % 20, 'Do', 'running', 1, 20, 1 from generate_series(1, 200) i`)
	s.becomes("200 pending", `select string_agg(concat_ws(' ', n, state), ', ') from (
		select state, count(*) as n from jobs group by state) c`)
	s.swept()
	s.is("true", `select bool_and(attempts = 1 and excused = 0) from jobs`)
	s.logs(202, "job recovered")
	s.logs(0, "steward waiting")
}

// An operator may hold the row of one queue: the others do not wait for that.
func TestQueueThatIsLockedDoesNotKeepTheOthersFromBeingSwept(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue) values ('a'), ('b')`)
	s.runningJob("a")
	s.runningJob("b")
	operator := testdb.Connect(t, s.url)
	tx, err := operator.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from queues where queue = 'a' for update`); err != nil {
		t.Fatal(err)
	}
	s.run(s.file(), quick())
	s.becomes("pending", state, "b")
	s.is("running", state, "a")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.becomes("pending", state, "a")
	s.logs(0, "steward waiting")
}

// Its child died and no other follows: what it was doing does not wait for the next round, and is told why.
func TestJobsOfAQueueThatHasJustLostItsChildComeBackAtOnce(t *testing.T) {
	s := newSite(t)
	deaths := []jobs.Death{{N: 1, Cause: "child killed by signal 9"}, {N: 2, Cause: "exit status 78"}}
	p := jobs.Picture{Supervisor: "other"}
	p.Children = []jobs.Child{{Queue: "parked", State: jobs.ChildParked, Deaths: deaths}}
	p.Removed = []jobs.Child{{Queue: "removed", State: jobs.ChildEnded, Deaths: deaths}}
	for _, queue := range []string{"parked", "removed"} {
		pid, started, left := s.dead(wire.Mark("other", 1))
		defer func() { _ = syscall.Kill(left, syscall.SIGKILL) }()
		s.held(queue, pid, started, "1 h")
		s.runningJob(queue)
	}
	r := s.run(s.file("parked"), wire.Default()) // its rounds are a minute apart
	r.Show(p)
	for _, queue := range []string{"parked", "removed"} {
		s.becomes("pending", state, queue)
		s.is("child killed by signal 9", `select last_error from jobs where queue = $1`, queue)
	}
}
