package supervisor

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
)

// The test binary is also the supervisor under test and, started by that one, its children.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "supervise" {
		os.Exit(supervise(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == "child" {
		os.Exit(newStub(os.Args[2]).act())
	}
	os.Exit(m.Run())
}

// stub is a child that acts out the script its queue is named after: "drains" and "drains.2" play the same.
type stub struct {
	queue    string
	control  *bufio.Reader
	status   *os.File
	settings wire.Settings
	size     int // of the settings line
	log      hclog.Logger
}

func newStub(queue string) *stub {
	return &stub{
		queue:   queue,
		control: bufio.NewReader(os.NewFile(wire.ControlFD, "control")),
		status:  os.NewFile(wire.StatusFD, "status"),
		log:     eventLog().With("queue", queue, "pid", os.Getpid()),
	}
}

func (s *stub) act() int {
	script, _, _ := strings.Cut(s.queue, ".")
	if script == "deaf" { // reads nothing, ever
		s.log.Info("stub is deaf")
		select {}
	}
	if !s.read(&s.settings) {
		return wire.ExitOK
	}
	s.log = s.log.With("n", s.settings.N)
	s.log.Info("stub has settings", "bytes", s.size, "supervisor", s.settings.Supervisor,
		"deaths", s.settings.Deaths, "quiet", s.settings.Quiet, "worker", s.worker(), "database_url", s.settings.DatabaseURL, "files", openFiles(), "env", notableEnv())
	if script == "mute" {
		return s.obey(wire.Stop)
	}
	s.say(wire.Status{Is: wire.Hello})
	if script != "silent" && script != "stale" && script != "puppet" {
		go s.beat()
	}

	switch script {
	case "puppet":
		return s.puppet()
	case "crash-at-once":
		return 3
	case "crash-bidding":
		s.say(wire.Status{Is: wire.Bidding})
		return 3
	case "crash-ready":
		s.ready()
		return 3
	case "crash-ready-once":
		if s.settings.N == 1 {
			s.ready()
			return 3
		}
		s.say(wire.Status{Is: wire.StandingBy})
		return s.obey(wire.Drain)
	case "lives-long-at-third":
		if s.settings.N == 3 {
			s.ready()
			time.Sleep(2 * s.settings.Times.RestartForget)
		}
		return 3
	case "parks":
		s.say(wire.Status{Is: wire.Bye, Detail: "no such command", Free: true})
		return wire.ExitConfig
	case "babbles":
		s.babble()
		s.ready()
		return s.obey(wire.Drain)
	case "leaves-a-sleep":
		s.leaveASleep()
		s.ready()
		return s.obey(wire.Drain)
	case "leaves-a-holder":
		if s.settings.N == 1 {
			s.leaveAHolder()
		}
		s.ready()
		return s.obey(wire.Drain)
	case "unreleased":
		s.ready()
		s.hear()
		s.say(wire.Status{Is: wire.Bye, Detail: "database is down"})
		return wire.ExitFailed
	case "drains-when-let":
		s.ready()
		s.hear()
		for !exists(letFile(os.Getenv(eventsEnv))) {
			time.Sleep(2 * time.Millisecond)
		}
		return s.leave()
	case "silent": // from the second on it lives
		if s.settings.N > 1 {
			go s.beat()
		}
		s.ready()
		return s.obey(wire.Drain)
	case "stale":
		s.ready()
		if s.settings.N == 1 {
			s.say(wire.Status{Is: wire.Beat, Stale: s.settings.Times.Stale})
		} else {
			go s.beat()
		}
		return s.obey(wire.Drain, wire.Stop)
	case "never-up":
		return s.obey(wire.Drain, wire.Stop)
	case "waits":
		s.say(wire.Status{Is: wire.Waiting, Detail: "no database"})
		return s.obey(wire.Drain, wire.Stop)
	case "stands-by":
		s.say(wire.Status{Is: wire.StandingBy, Detail: "other/1"})
		return s.obey(wire.Drain, wire.Stop)
	case "later":
		s.ready()
		if s.settings.N <= 3 {
			s.say(wire.Status{Is: wire.Bye, Free: true})
			return wire.ExitLater
		}
		return s.obey(wire.Drain)
	case "panics":
		if s.settings.N == 1 {
			if err := debug.SetCrashOutput(os.NewFile(wire.CrashFD, "crash"), debug.CrashOptions{}); err != nil {
				panic(err)
			}
			s.ready()
			panic("boom in a handler")
		}
		s.ready()
		return s.obey(wire.Drain)
	case "needs-stop":
		s.ready()
		return s.obey(wire.Stop)
	case "stubborn":
		s.ready()
		return s.obey("")
	default: // "drains"
		s.ready()
		return s.obey(wire.Drain, wire.Stop)
	}
}

// obey hears what it is told until that is one of orders, then leaves.
func (s *stub) obey(orders ...string) int {
	for {
		do, open := s.hear()
		if !open {
			return wire.ExitOK
		}
		if slices.Contains(orders, do) {
			return s.leave()
		}
	}
}

func (s *stub) hear() (do string, open bool) {
	var c wire.Control
	if !s.read(&c) {
		s.log.Info("stub sees the supervisor gone")
		return "", false
	}
	s.log.Info("stub is told", "do", c.Do, "within", c.Within, "set", c.Set)
	return c.Do, true
}

func (s *stub) leave() int {
	s.log.Info("stub leaves")
	s.say(wire.Status{Is: wire.Bye, Free: true})
	return wire.ExitOK
}

func (s *stub) ready() {
	s.say(wire.Status{Is: wire.Ready})
	s.log.Info("stub is ready")
}

func (s *stub) say(status wire.Status) {
	line, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	s.write(append(line, '\n'))
}

func (s *stub) write(text []byte) {
	if _, err := s.status.Write(text); err != nil {
		s.log.Info("stub cannot write", "error", err)
	}
}

func (s *stub) read(into any) bool {
	line, err := s.control.ReadBytes('\n')
	s.size = len(line)
	return err == nil && json.Unmarshal(line, into) == nil
}

func (s *stub) beat() {
	for range time.Tick(s.settings.Times.Beat) {
		s.say(wire.Status{Is: wire.Beat, Running: 2})
	}
}

// babble writes eight lines that are no status, one of them of 2 MiB.
func (s *stub) babble() {
	s.write(slices.Repeat([]byte("x"), 2<<20))
	s.write([]byte("\n{\"is\":\"rea\n\n[1]\nnull\n{}\n\x00\xff\n" + strings.Repeat("{", maxStatusLine) + "\n"))
}

// leaveASleep starts a command that outlives a kill of the stub, and says whether that of the incarnation
// before is still there.
func (s *stub) leaveASleep() {
	note := filepath.Join(filepath.Dir(os.Getenv(eventsEnv)), s.queue+".sleep")
	if text, err := os.ReadFile(note); err == nil {
		pid, _ := strconv.Atoi(string(text))
		_, alive := procs.StartTime(pid)
		s.log.Info("stub looks for the sleep before it", "alive", alive)
	}
	sleep := exec.Command("sleep", "300")
	if err := sleep.Start(); err != nil {
		panic(err)
	}
	if err := os.WriteFile(note, []byte(strconv.Itoa(sleep.Process.Pid)), 0o600); err != nil {
		panic(err)
	}
}

// leaveAHolder starts a command that leaves the session and keeps both pipes open.
func (s *stub) leaveAHolder() {
	sleep := exec.Command("sleep", "300")
	sleep.ExtraFiles = []*os.File{os.NewFile(wire.ControlFD, "control"), s.status}
	sleep.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := sleep.Start(); err != nil {
		panic(err)
	}
	s.log.Info("stub leaves a holder", "holder", sleep.Process.Pid)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// worker is the part of the settings a test asks for: with all of a test's padding the log would be large.
func (s *stub) worker() config.Worker {
	return config.Worker{MaxJobsPerSecond: s.settings.Worker.MaxJobsPerSecond, MaxAttempts: s.settings.Worker.MaxAttempts}
}

// notableEnv is the part of the environment a test asks for. The rest is nobody's business in a log.
func notableEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return !strings.HasPrefix(entry, "NOTIFY_") && !strings.HasPrefix(entry, "WATCHDOG_") &&
			!strings.HasPrefix(entry, "LISTEN_") && entry != "KEPT=1"
	})
}

// openFiles lists what is behind the descriptors above the protocol's, but for what Go and the stub open.
func openFiles() []string {
	found := []string{}
	for fd := wire.CrashFD + 1; fd < 256; fd++ {
		to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		ofGo := strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/fs/cgroup/") || to == os.Getenv(eventsEnv)
		if err == nil && !ofGo {
			found = append(found, to)
		}
	}
	return found
}
