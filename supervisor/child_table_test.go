package supervisor

import (
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

var childTable = table{
	{"", "starting", "ready", "quiet", "standing by", "waiting for the database"},
	{"becomes ready", "is ready", "nothing", "stays quiet", "is ready", "is ready"},
	{"exits 0", "starts again", "starts again", "starts again, quiet", "starts again", "starts again"},
	{"exits 75", "is replaced", "is replaced", "is replaced, quiet", "is replaced", "is replaced"},
	{"exits 78", "is parked", "is parked", "is parked", "is parked", "is parked"},
	{"dies", "starts again", "starts again", "starts again, quiet", "starts again", "starts again"},
	{"is silent", "hangs after 30 s", "hangs after 15 s", "hangs after 15 s", "hangs after 15 s", "hangs after 15 s"},
	{"settings change", "drains, starts anew", "drains, starts anew", "ends quiet, drains, starts anew", "drains, starts anew", "drains, starts anew"},
	{"limits change", "is told", "is told", "ends quiet, is told", "is told", "is told"},
	{"is removed", "drains, ended", "drains, ended", "ends quiet, drains, ended", "drains, ended", "drains, ended"},
	{"file unchanged", "nothing", "nothing", "ends quiet", "nothing", "nothing"},
	{"drain", "drains", "drains", "drains", "drains", "drains"},
	{"stop", "stops", "stops", "stops", "stops", "stops"},
}

var leavingTable = table{
	{"", "leaving: told to", "leaving: hangs", "restarting", "parked", "ended"},
	{"becomes ready", "leaves all the same", "leaves all the same", "— no process", "— no process", "— no process"},
	{"exits 0", "the next starts at once", "starts again", "— no process", "— no process", "— no process"},
	{"exits 75", "the next starts at once", "is replaced", "— no process", "— no process", "— no process"},
	{"exits 78", "the next starts at once", "is parked", "— no process", "— no process", "— no process"},
	{"dies", "the next starts at once", "starts again", "— no process", "— no process", "— no process"},
	{"is silent", "hangs after 15 s", "killed after 5 s, counts", "— no process", "— no process", "— no process"},
	{"settings change", "the next has them", "the next has them", "starts at once", "starts at once", "starts at once"},
	{"limits change", "the next has them", "the next has them", "the next has them", "starts at once", "starts at once"},
	{"is removed", "ended when it has left", "ended when it has left", "ended", "ended", "— not in the file"},
	{"file unchanged", "nothing", "nothing", "nothing", "starts at once", "nothing"},
	{"drain", "drains, no next", "drains, no next", "no next", "no next", "no next"},
	{"stop", "stops, no next", "stops, no next", "no next", "no next", "no next"},
}

func TestChildIsInEachStateTreatedAsTheTablesSay(t *testing.T) {
	t.Parallel()
	for _, table := range []table{childTable, leavingTable} {
		table.each(t, func(s *scene, says string) {
			childStates[s.state](s)
			s.count()
			childEvents[s.event](s)
			childOutcomes[says](s)
		})
	}
}

var childStates = map[string]func(*scene){
	"starting": func(s *scene) { s.begin(s.times()) },
	"ready":    func(s *scene) { s.beginAs("ready", "ready") },
	"quiet": func(s *scene) {
		s.beginAs("ready", "ready")
		s.send(syscall.SIGUSR2)
		s.becomes("quiet")
		s.isToldQuiet(true)
	},
	"standing by":              func(s *scene) { s.beginAs("stand by", "standing by") },
	"waiting for the database": func(s *scene) { s.beginAs("wait", "waiting for the database") },
	"leaving: told to": func(s *scene) {
		s.beginAs("ready", "ready")
		s.says("stay")
		s.takesOn(s.changed())
		s.becomes("leaving")
		s.isToldTo(wire.Drain)
	},
	"leaving: hangs": func(s *scene) {
		s.beginAs("ready", "ready")
		s.says("stay")
		s.says("hang")
		s.becomes("leaving")
		s.isToldTo(wire.Stop)
	},
	"restarting": func(s *scene) {
		p := s.times()
		p.RestartMin = time.Minute // much longer than a test
		if s.event == "limits change" || s.event == "is removed" {
			p.RestartMin = 2 * time.Second
		}
		s.begin(p)
		s.exits("3")
		s.sees("stub has settings", 2)
		s.exits("3")
		s.n = 2
		s.becomes("restarting")
	},
	"parked": func(s *scene) {
		s.begin(s.times())
		s.exits("78")
		s.becomes("parked")
	},
	"ended": func(s *scene) {
		s.beginAs("ready", "ready")
		s.takesOn(s.without())
		s.sees("child ended", 1)
		s.becomes("")
	},
}

// times is the plan of the cell: who hangs is found sooner where that is waited for.
func (s *scene) times() plan {
	p := plan{Queues: []string{puppet}, Rate: 1}
	switch {
	case s.event == "is silent":
		p.Watched = 20
	case s.state == "leaving: hangs" && s.event == "is removed":
		p.Watched, p.Shutdown = 4, 2*patience
	}
	switch {
	case s.state == "restarting" && s.event == "is removed":
		p.Queues = append(p.Queues, "crash-at-once") // which shows that time passes
	case s.state == "restarting" && (s.event == "drain" || s.event == "stop"):
		p.Queues = append(p.Queues, "drains-when-let")
	case s.event == "is removed" || s.state == "ended": // a file has a queue
		p.Queues = append(p.Queues, "drains")
	}
	return p
}

func (s *scene) beginAs(word, state string) {
	s.begin(s.times())
	s.says(word)
	s.becomes(state)
}

// takesOn has the supervisor take on a file, which becomes that of the scene.
func (s *scene) takesOn(p plan) {
	s.Helper()
	s.reload(s.T, p)
	s.plan = p
}

func (s *scene) changed() plan {
	p := s.plan
	p.Queues = s.times().Queues
	p.Attempts = map[string]int{puppet: p.Attempts[puppet] + 1}
	return p
}

func (s *scene) limited() plan {
	p := s.plan
	p.Queues, p.Rate = s.times().Queues, 5
	return p
}

func (s *scene) without() plan {
	p := s.plan
	p.Queues = s.times().Queues[1:]
	return p
}

var childEvents = map[string]func(*scene){
	"becomes ready":   func(s *scene) { s.says("ready") },
	"exits 0":         func(s *scene) { s.exits("0") },
	"exits 75":        func(s *scene) { s.exits("75") },
	"exits 78":        func(s *scene) { s.exits("78") },
	"dies":            func(s *scene) { kill(s.T, s.sees("stub has settings", s.n).PID) },
	"is silent":       func(s *scene) { s.says("be silent") },
	"settings change": func(s *scene) { s.takesOn(s.changed()) },
	"limits change":   func(s *scene) { s.takesOn(s.limited()) },
	"is removed":      func(s *scene) { s.takesOn(s.without()) },
	"file unchanged":  func(s *scene) { s.takesOn(s.plan) },
	"drain":           func(s *scene) { s.send(syscall.SIGTERM) },
	"stop":            func(s *scene) { s.send(syscall.SIGQUIT) },
}
