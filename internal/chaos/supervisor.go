package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"queuekeeper/internal/tryout"
)

// supervisor is one that a round has started. Its number says when: the first is 1.
type supervisor struct {
	number int
	place  string // in the round's folder: the mark of its processes, and where its log is
	cmd    *exec.Cmd
	id     string        // as the table has it
	ended  chan struct{} // closed when it has
	left   []process     // that it left behind, after ended
	err    error         // of looking for them

	told, killed bool
	stopped      time.Time       // it is, until then
	failures     map[string]int  // how often we ended its child of a queue
	unclean      map[string]bool // the queues whose child we did not let release its lease
}

// supervisorForm is what its place is called.
const supervisorForm = "supervisor-%d"

func (s *supervisor) name() string { return fmt.Sprintf("supervisor %d", s.number) }
func (s *supervisor) log() string  { return s.place + ".log" }

var startedPattern = regexp.MustCompile(`supervisor started: .*\bsupervisor=([0-9a-f]{32})`)

// start starts one more and returns once it runs. Before that a signal would end it as it ends any program.
func (r *round) start(ctx context.Context) (*supervisor, error) {
	number := len(r.supervisors) + 1
	s := &supervisor{
		number: number, place: filepath.Join(r.folder, fmt.Sprintf(supervisorForm, number)),
		cmd:   exec.Command(r.chaos.self, "run", "-c", r.file()),
		ended: make(chan struct{}), failures: map[string]int{}, unclean: map[string]bool{},
	}
	log, err := os.Create(s.log())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = append(os.Environ(), "DATABASE_URL="+r.url(), siteVariable+"="+s.place)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	r.supervisors = append(r.supervisors, s)
	go s.wait()
	return s, s.started(ctx)
}

// wait is for its end. It is the last to leave, so that nothing of it is there then.
func (s *supervisor) wait() {
	_ = s.cmd.Wait() // its error is the exit status, which ProcessState keeps
	s.left, s.err = processes(s.place)
	close(s.ended)
}

func (s *supervisor) started(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for s.id == "" {
		text, err := os.ReadFile(s.log())
		if err != nil {
			return err
		}
		if m := startedPattern.FindSubmatch(text); m != nil {
			s.id = string(m[1])
		}
		if !s.alive() || !tryout.Pause(ctx, 5*time.Millisecond) {
			return fmt.Errorf("%s did not start", s.name())
		}
	}
	return nil
}

func (s *supervisor) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return !s.killed
	}
}

// serving reports whether it has not been told to leave.
func (s *supervisor) serving() bool { return s.alive() && !s.told }

// quick reports whether it starts the next child of a queue at once, as it does after the first failure.
func (s *supervisor) quick(queue string) bool {
	return s.serving() && s.failures[queue] == 0 && time.Now().After(s.stopped)
}

func (r *round) those(are func(*supervisor) bool) (all []*supervisor) {
	for _, s := range r.supervisors {
		if are(s) {
			all = append(all, s)
		}
	}
	return all
}

func (s *supervisor) send(sig syscall.Signal) bool { return s.cmd.Process.Signal(sig) == nil }

func (s *supervisor) kill() {
	s.killed = true
	s.send(syscall.SIGKILL)
}

// remainPattern is what it says of each lease that it could not see released.
var remainPattern = regexp.MustCompile(`a lease may remain until it runs out: queue=(\S+)`)

// judge looks at the end of one that was not killed. Status 1 is right if some child was not let release its lease.
func (s *supervisor) judge() (mayRemain bool, err error) {
	if s.killed {
		return true, nil
	}
	if !s.told {
		return true, fmt.Errorf("%s ended by itself: %v", s.name(), s.cmd.ProcessState)
	}
	faults := []error{s.err}
	for _, p := range s.left {
		faults = append(faults, fmt.Errorf("%s left process %d behind (%s)", s.name(), p.Pid, p.what()))
	}
	text, err := os.ReadFile(s.log())
	if err != nil {
		return true, err
	}
	remain := remainPattern.FindAllSubmatch(text, -1)
	for _, m := range remain {
		if queue := string(m[1]); !s.unclean[queue] {
			faults = append(faults, fmt.Errorf("%s did not see the lease of queue %s released, though its children were let", s.name(), queue))
		}
	}
	want := min(len(remain), 1)
	if got := s.cmd.ProcessState.ExitCode(); got != want {
		faults = append(faults, fmt.Errorf("%s: got %v, want exit status %d", s.name(), s.cmd.ProcessState, want))
	}
	return want == 1, errors.Join(faults...)
}

func (p process) what() string {
	if p.queue != "" {
		return "the child of " + p.queue
	}
	return "a command"
}

// logs are the last lines of all logs of the round but those of single jobs, in the order of time. Of a trace there is
// nothing.
func (r *round) logs(last int) string {
	var events []string
	for _, s := range r.supervisors {
		text, _ := os.ReadFile(s.log()) // none: nothing to show
		for line := range bytes.Lines(text) {
			if !bytes.HasPrefix(line, []byte("20")) || bytes.Contains(line, []byte("job ended:")) {
				continue
			}
			when, what, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
			events = append(events, fmt.Sprintf("%s %d: %s", when, s.number, what))
		}
	}
	slices.Sort(events)
	return "the logs end with:\n" + strings.Join(events[max(0, len(events)-last):], "\n")
}
