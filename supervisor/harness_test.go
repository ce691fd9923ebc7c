package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/internal/eventually"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// eventsEnv names the file supervisor and stubs log to. It also marks every process of a test: commands
// that stubs start inherit it.
const eventsEnv = "QUEUEKEEPER_TEST_EVENTS"

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

const secret = "postgres://app:s3cret@db/app"

// plan is the supervisor a test wants.
type plan struct {
	Queues     []string
	Shutdown   time.Duration // default: patience
	Divided    time.Duration // of the default times; default 100
	Watched    time.Duration // of those that tell who hangs; default 1
	Executable string
	Padding    int            // bytes added to the settings of each child
	LogsToo    bool           // the log goes to standard error as well
	Rate       float64        // of every queue
	Attempts   map[string]int // of some: what no running child takes on
	Fault      string         // of the file, at a reload
	Hangs      bool           // a reload, until it is let
	RestartMin time.Duration  // how long a second failure in a row waits; default: as divided
	LastWords  time.Duration  // how long the pipes of a dead child are read on; default: as in a real run
	StdinEnds  bool           // the context ends with standard input
}

func (p plan) file() config.File {
	f := config.File{Path: "queues.toml", DatabaseURL: secret, Lease: 30 * time.Second, ShutdownTimeout: p.Shutdown}
	for _, q := range p.Queues {
		f.Workers = append(f.Workers, config.Worker{
			Queue: q, Dir: string(bytes.Repeat([]byte("x"), p.Padding)), MaxJobsPerSecond: p.Rate, MaxAttempts: p.Attempts[q],
		})
	}
	return f
}

// supervise is the process under test.
func supervise(text string) int {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	log := eventLog()
	if p.LogsToo {
		log = hclog.New(&hclog.LoggerOptions{Output: io.MultiWriter(eventFile(), os.Stderr), JSONFormat: true})
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if p.StdinEnds {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	times := wire.Default().Divided(p.Divided).Watched(p.Watched)
	if p.RestartMin > 0 {
		times.RestartMin, times.RestartMax = p.RestartMin, p.RestartMin
	}
	if p.LastWords > 0 {
		lastWords = p.LastWords
	}
	return Run(ctx, Options{
		File: p.file(), Log: log, Times: times, Executable: p.Executable,
		Reload: reread,
		Show:   func(p jobs.Picture) { log.Info("picture", "picture", p) },
	})
}

// reread is a reload: the plan of the moment is in a file.
func reread(ctx context.Context, _ config.File) (config.File, error) {
	eventLog().Info("file is read")
	text, err := os.ReadFile(planFile(os.Getenv(eventsEnv)))
	if err != nil {
		return config.File{}, err
	}
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return config.File{}, err
	}
	if p.Hangs {
		eventLog().Info("reload hangs")
		for !exists(letFile(os.Getenv(eventsEnv))) && ctx.Err() == nil {
			time.Sleep(2 * time.Millisecond)
		}
		eventLog().Info("reload goes on")
	}
	if p.Fault != "" {
		return config.File{}, errors.New(p.Fault)
	}
	return p.file(), nil
}

func planFile(events string) string { return events + ".plan" }

func eventLog() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: eventFile(), JSONFormat: true, Level: hclog.Debug})
}

func eventFile() *os.File {
	f, err := os.OpenFile(os.Getenv(eventsEnv), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		panic(err)
	}
	return f
}

// event is a line of the log: what happened, in the order in which it did.
type event struct {
	What    string        `json:"@message"`
	At      time.Time     `json:"@timestamp"`
	Queue   string        `json:"queue"`
	PID     int           `json:"pid"`
	N       int           `json:"n"`
	Cause   string        `json:"cause"`
	AgainIn time.Duration `json:"again_in"`
	Detail  string        `json:"detail"`
	Lines   int           `json:"lines"`

	Is     string        `json:"is"`
	Do     string        `json:"do"`
	Within time.Duration `json:"within"`
	Alive  bool          `json:"alive"`
	Holder int           `json:"holder"`

	Picture jobs.Picture  `json:"picture"`
	Set     *wire.Changed `json:"set"`
	Quiet   bool          `json:"quiet"`
	State   string        `json:"state"`
	Word    string        `json:"word"`
	Worker  config.Worker `json:"worker"`

	Bytes       int          `json:"bytes"`
	Supervisor  string       `json:"supervisor"`
	DatabaseURL string       `json:"database_url"`
	Deaths      []jobs.Death `json:"deaths"`
	Files       []string     `json:"files"`
	Env         []string     `json:"env"`
}

func (e event) is(what, queue string, n int) bool {
	return e.What == what && (queue == "" || e.Queue == queue) && (n == 0 || e.N == n)
}

// process is a running supervisor.
type process struct {
	cmd  *exec.Cmd
	path string // of the events
}

// start starts a supervisor; with is what else its command needs. When the test ends, no process of it is left.
func start(t *testing.T, p plan, with ...func(*exec.Cmd)) *process {
	t.Helper()
	if p.Shutdown == 0 {
		p.Shutdown = patience
	}
	if p.Divided == 0 {
		p.Divided = 100
	}
	if p.Watched == 0 {
		p.Watched = 1
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatalf("encode plan: %v", err)
	}
	path := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatalf("make events: %v", err)
	}
	cmd := exec.Command(os.Args[0], "supervise", string(text))
	// The race detector keeps a process for a second after its exit: not what is measured here.
	cmd.Env = append(os.Environ(), eventsEnv+"="+path, "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	for _, add := range with {
		add(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start supervisor: %v", err)
	}
	r := &process{cmd, path}
	t.Cleanup(func() { r.clean(t) })
	return r
}

// reload has the supervisor take on another plan, and waits until it has, or has refused it.
func (r *process) reload(t *testing.T, p plan) event {
	t.Helper()
	r.write(t, p)
	took, refused := "file taken on", "file not taken on, everything stays as it is; mend it and send HUP"
	what := took
	if p.Fault != "" {
		what = refused
	}
	before := len(r.all(t, what, "", 0))
	r.signal(t, syscall.SIGHUP)
	return r.awaitSome(t, before+1, what, "", 0)[before]
}

// write writes a plan for the next reload.
func (r *process) write(t *testing.T, p plan) {
	t.Helper()
	if p.Shutdown == 0 {
		p.Shutdown = patience
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatalf("encode plan: %v", err)
	}
	if err := os.WriteFile(planFile(r.path), text, 0o600); err != nil {
		t.Fatalf("write plan: %v", err)
	}
}

// clean ends what a failed test has left, and shows its events.
func (r *process) clean(t *testing.T) {
	if !t.Failed() {
		return
	}
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	for _, pid := range r.marked(t) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if text, err := os.ReadFile(r.path); err == nil {
		t.Logf("events:\n%.20000s", text)
	}
}

func (r *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("send %v: %v", sig, err)
	}
}

// let lets the stubs that wait for it leave.
func (r *process) let(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(letFile(r.path), nil, 0o600); err != nil {
		t.Fatalf("let stubs leave: %v", err)
	}
}

// letFile is the file whose existence lets stubs leave, next to the events.
func letFile(events string) string { return events + ".let" }

// ends waits for the supervisor to exit with want. The closing assertion of every test: nothing is left
// running, and no queue ever had two children.
func (r *process) ends(t *testing.T, want int) {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = r.cmd.Process.Kill() })
	defer timer.Stop()
	err := r.cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatalf("wait for supervisor: %v", err)
	}
	if left := r.marked(t); len(left) > 0 {
		t.Errorf("processes left after the supervisor's end: got %v, want none", left)
	}
	if got := r.cmd.ProcessState.ExitCode(); got != want {
		t.Fatalf("exit status of the supervisor: got %v, want %d", r.cmd.ProcessState, want)
	}
	r.oneChildPerQueue(t)
}

// oneChildPerQueue: incarnation n + 1 starts after n has ended.
func (r *process) oneChildPerQueue(t *testing.T) {
	t.Helper()
	alive := map[string]int{}
	last := map[string]int{}
	for _, e := range r.events(t) {
		switch e.What {
		case "child started":
			if alive[e.Queue] != 0 || e.N != last[e.Queue]+1 {
				t.Errorf("queue %s: child %d started while %d lives, after %d", e.Queue, e.N, alive[e.Queue], last[e.Queue])
			}
			alive[e.Queue], last[e.Queue] = e.N, e.N
		case "child died", "child ended", "child asks for a new process", parked:
			alive[e.Queue] = 0
		}
	}
	for queue, n := range alive {
		if n != 0 {
			t.Errorf("queue %s: got no end of child %d, want one", queue, n)
		}
	}
}

const parked = "queue parked: it cannot work as it is set up; put it right and send HUP"

// events are those so far.
func (r *process) events(t *testing.T) []event {
	t.Helper()
	return r.read(t, "")
}

// read returns the events so far with that name; "": all of them.
func (r *process) read(t *testing.T, what string) (events []event) {
	t.Helper()
	text, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatalf("read events: %v", err)
	}
	wanted := []byte(`"@message":"` + what)
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // is being written
		}
		if !bytes.Contains(line, wanted) {
			continue // to decode each of them at every look would take longer than all else
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("decode event %s: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// await waits for an event: of any queue if queue is "", of any incarnation if n is 0.
func (r *process) await(t *testing.T, what, queue string, n int) event {
	t.Helper()
	return r.awaitSome(t, 1, what, queue, n)[0]
}

// awaitSome waits for so many of them, and returns those there are.
func (r *process) awaitSome(t *testing.T, count int, what, queue string, n int) []event {
	t.Helper()
	var found []event
	eventually.OK(t, patience, func() error {
		if found = r.all(t, what, queue, n); len(found) < count {
			return fmt.Errorf("events %q of queue %q, incarnation %d: got %d, want %d", what, queue, n, len(found), count)
		}
		return nil
	})
	return found
}

// all are the events so far that match, as for await.
func (r *process) all(t *testing.T, what, queue string, n int) []event {
	t.Helper()
	return slices.DeleteFunc(r.read(t, what), func(e event) bool { return !e.is(what, queue, n) })
}

// marked are the living processes of this test.
func (r *process) marked(t *testing.T) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatalf("list processes: %v", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + entry.Name() + "/environ") // empty once it is dead
		if bytes.Contains(env, []byte(eventsEnv+"="+r.path+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// openFiles is how many files the supervisor has open.
func (r *process) openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("list files of the supervisor: %v", err)
	}
	return len(entries)
}

// kill kills a process, and waits until it is dead, reaped or not.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
	eventuallyTrue(t, "the end of a process that was killed", func() bool {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return len(env) == 0
	})
}

func eventuallyTrue(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually.OK(t, patience, func() error {
		if !ok() {
			return fmt.Errorf("%s: got none, want one", what)
		}
		return nil
	})
}
