package supervisor

import (
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

var supervisorTable = table{
	{"", "running", "quiet", "reloading", "draining", "stopping", "killing"},
	{"TERM", "drains", "drains", "drains, drops the file", "nothing", "nothing", "nothing"},
	{"INT", "drains", "drains", "drains, drops the file", "stops", "nothing", "nothing"},
	{"QUIT", "stops", "stops", "stops, drops the file", "stops", "nothing", "nothing"},
	{"HUP", "reads the file", "ends quiet, reads the file", "reads it once more", "nothing", "nothing", "nothing"},
	{"HUP, faulty file", "changes nothing", "ends quiet, changes nothing else", "reads it once more, changes nothing then", "nothing", "nothing", "nothing"},
	{"USR1", "logs the status", "logs the status", "logs the status", "logs the status", "logs the status", "logs the status"},
	{"USR2", "becomes quiet", "nothing", "becomes quiet", "nothing", "nothing", "nothing"},
	{"a child ends", "starts it again", "starts it again, quiet", "starts it again as it was", "leaves with the last", "leaves with the last", "leaves with the last"},
	{"the time is up", "— no end has begun", "— no end has begun", "— no end has begun", "kills", "kills", "— it is up once"},
}

func TestSupervisorDoesInEachStateWhatTheTableSays(t *testing.T) {
	t.Parallel()
	supervisorTable.each(t, func(s *scene, says string) {
		supervisorStates[s.state](s)
		s.count()
		supervisorEvents[s.event](s)
		supervisorOutcomes[says](s)
	})
}

var supervisorStates = map[string]func(*scene){
	"running": func(s *scene) { s.beginReady(patience) },
	"quiet": func(s *scene) {
		s.beginReady(patience)
		s.send(syscall.SIGUSR2)
		s.isToldQuiet(true)
	},
	"reloading": func(s *scene) {
		s.beginReady(patience)
		s.write(s.T, s.other(plan{Hangs: true}))
		s.send(syscall.SIGHUP)
		s.sees("reload hangs", 0)
	},
	"draining": func(s *scene) {
		s.beginReady(s.timeout())
		s.send(syscall.SIGTERM)
		s.isToldTo(wire.Drain)
	},
	"stopping": func(s *scene) {
		s.beginReady(s.timeout())
		s.send(syscall.SIGQUIT)
		s.isToldTo(wire.Stop)
	},
	"killing": func(s *scene) { // lasts while somebody holds a pipe of the dead child open
		s.beginReady(short)
		for _, queue := range s.plan.Queues {
			s.tell(s.T, queue, "leave a holder")
		}
		s.send(syscall.SIGTERM)
		s.awaitSome(s.T, len(s.plan.Queues), "child killed: it did not leave in time", "", 1)
	},
}

// short is a time in which nobody is asked to leave who could.
const short = 300 * time.Millisecond

func (s *scene) timeout() time.Duration {
	if s.event == "the time is up" {
		return short
	}
	return patience
}

// beginReady begins with a puppet that is ready and will leave when the test says so.
func (s *scene) beginReady(timeout time.Duration) {
	p := plan{Rate: 1, Shutdown: timeout, LastWords: patience}
	if s.event == "a child ends" {
		p.Queues = []string{puppet, second}
	}
	s.begin(p)
	for _, queue := range s.plan.Queues {
		s.await(s.T, "stub has settings", queue, 1)
		s.tell(s.T, queue, "stay")
		s.tell(s.T, queue, "ready")
	}
	s.becomes("ready")
}

const second = "puppet.second"

// other is p, a plan with a limit that is not the one of the start.
func (s *scene) other(p plan) plan {
	p.Queues, p.Shutdown, p.Rate = s.plan.Queues, s.plan.Shutdown, 5
	return p
}

var supervisorEvents = map[string]func(*scene){
	"TERM": func(s *scene) { s.send(syscall.SIGTERM) },
	"INT":  func(s *scene) { s.send(syscall.SIGINT) },
	"QUIT": func(s *scene) { s.send(syscall.SIGQUIT) },
	"HUP": func(s *scene) {
		s.write(s.T, s.other(plan{}))
		s.send(syscall.SIGHUP)
	},
	"HUP, faulty file": func(s *scene) {
		s.write(s.T, plan{Fault: "queues.toml:3: no"})
		s.send(syscall.SIGHUP)
	},
	"USR1": func(s *scene) { s.send(syscall.SIGUSR1) },
	"USR2": func(s *scene) { s.send(syscall.SIGUSR2) },
	"a child ends": func(s *scene) {
		if s.state == "killing" { // it is dead already, and its end is noticed now
			s.releaseHolder(puppet)
			return
		}
		s.exits("0")
	},
	"the time is up": func(*scene) {},
}

var supervisorOutcomes = map[string]func(*scene){
	"drains": func(s *scene) {
		s.isToldTo(wire.Drain)
		s.finish()
	},
	"stops": func(s *scene) {
		s.isToldTo(wire.Stop)
		s.finish()
	},
	"drains, drops the file": func(s *scene) { s.dropsTheFile(wire.Drain) },
	"stops, drops the file":  func(s *scene) { s.dropsTheFile(wire.Stop) },
	"nothing":                (*scene).changesNothing,
	"reads the file": func(s *scene) {
		s.sees("file taken on", 0)
		s.isToldRate(5)
		s.finish()
	},
	"ends quiet, reads the file": func(s *scene) {
		s.isToldQuiet(false)
		s.sees("file taken on", 0)
		s.isToldRate(5)
		s.finish()
	},
	"reads it once more": func(s *scene) {
		s.let(s.T)
		s.awaitSome(s.T, 2, "file taken on", "", 0)
		s.finish()
	},
	"changes nothing": func(s *scene) {
		s.sees(refused, 0)
		s.same("orders", s.orders, s.did("stub is told"))
		s.finish()
	},
	"ends quiet, changes nothing else": func(s *scene) {
		s.isToldQuiet(false)
		s.sees(refused, 0)
		s.same("orders", 2, s.did("stub is told")) // to be quiet, and no more
		s.finish()
	},
	"reads it once more, changes nothing then": func(s *scene) {
		s.let(s.T)
		s.sees(refused, 0)
		s.same("files taken on", 1, s.did("file taken on"))
		s.isToldRate(5)
		s.finish()
	},
	"logs the status": func(s *scene) {
		got := s.sees("status", 0)
		want := map[string]string{"quiet": "running", "reloading": "running"}[s.state]
		if want == "" {
			want = s.state
		}
		if quiet := s.state == "quiet"; got.State != want || got.Quiet != quiet {
			s.Errorf("status: got %s, quiet %v, want %s, quiet %v", got.State, got.Quiet, want, quiet)
		}
		s.sees("status of queue", 1)
		s.finish()
	},
	"becomes quiet": func(s *scene) {
		s.isToldQuiet(true)
		if s.state == "reloading" { // and stays so, for the hangup came before
			s.let(s.T)
			s.sees("file taken on", 0)
		}
		if got := s.status(); !got.Quiet {
			s.Errorf("status: got quiet %v, want true", got.Quiet)
		}
		s.finish()
	},
	"starts it again":        func(s *scene) { s.startsItAgain(false) },
	"starts it again, quiet": func(s *scene) { s.startsItAgain(true) },
	"starts it again as it was": func(s *scene) {
		s.startsItAgain(false)
		s.same("files taken on", 0, s.did("file taken on"))
	},
	"leaves with the last": func(s *scene) {
		s.sees("child ended", 1)
		s.status()
		s.same("ends", 0, s.did("supervisor ended"))
		s.finish()
		s.same("processes", s.starts, s.processes())
	},
	"kills": func(s *scene) {
		s.sees("child killed: it did not leave in time", 1)
		s.ends(s.T, wire.ExitFailed)
	},
}

const refused = "file not taken on, everything stays as it is; mend it and send HUP"

func (s *scene) dropsTheFile(do string) {
	s.isToldTo(do)
	s.let(s.T)
	s.sees("reload goes on", 0)
	s.status()
	s.finish()
	s.same("files taken on", 0, s.did("file taken on"))
}

// changesNothing: no order, no state, no process. That a signal was ignored is logged, but for USR2.
func (s *scene) changesNothing() {
	switch s.event {
	case "TERM", "INT", "QUIT":
		s.sees("already ending: signal ignored", 0)
	case "HUP", "HUP, faulty file":
		s.sees("already ending: hangup ignored", 0)
	}
	got := s.status()
	want := s.state
	if s.state == "quiet" {
		want = "running"
	}
	if got.State != want || got.Quiet != (s.state == "quiet") {
		s.Errorf("status: got %s, quiet %v, want it as before", got.State, got.Quiet)
	}
	s.same("orders to leave", s.toLeave, s.leaveOrders())
	s.finish()
	s.same("other orders", s.orders-s.toLeave, s.did("stub is told")-s.leaveOrders())
	s.same("processes", s.starts, s.processes())
	s.same("files read", s.files, s.did("file is read"))
}

func (s *scene) startsItAgain(quiet bool) {
	s.sees("child died", 1)
	if next := s.sees("stub has settings", 2); next.Quiet != quiet || next.Worker.MaxJobsPerSecond != 1 {
		s.Errorf("settings of the next: got quiet %v and %v/s, want quiet %v and 1/s", next.Quiet, next.Worker.MaxJobsPerSecond, quiet)
	}
	s.finish()
}

// finish ends a scene in order, whatever came before.
func (s *scene) finish() {
	s.Helper()
	if s.state == "killing" {
		for _, queue := range s.plan.Queues {
			s.releaseHolder(queue)
		}
		s.ends(s.T, wire.ExitFailed)
		return
	}
	s.send(syscall.SIGTERM)
	s.sees("children told to leave", 0)
	for _, queue := range s.plan.Queues {
		s.order(s.T, queue, "exit 0")
	}
	s.ends(s.T, s.exit)
}

// releaseHolder ends what holds a pipe of the dead child of a queue open, if it has not been ended yet.
func (s *scene) releaseHolder(queue string) {
	s.Helper()
	if !s.released[queue] {
		kill(s.T, s.await(s.T, "stub leaves a holder", queue, 1).Holder)
	}
	s.released[queue] = true
}
