package supervisor

import (
	"fmt"
	"strings"
	"time"

	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

var childOutcomes = map[string]func(*scene){
	"is ready": func(s *scene) {
		s.becomes("ready")
		s.finish()
	},
	"nothing": func(s *scene) {
		s.isStill(shownAs(s.state))
		s.finish()
	},
	"stays quiet": func(s *scene) {
		s.isStill("quiet")
		s.finish()
	},
	"ends quiet": func(s *scene) {
		s.isToldQuiet(false)
		s.becomes("ready")
		s.finish()
	},
	"starts again":        func(s *scene) { s.startsAgain(false) },
	"starts again, quiet": func(s *scene) { s.startsAgain(true) },
	"is replaced":         func(s *scene) { s.isReplaced(false) },
	"is replaced, quiet":  func(s *scene) { s.isReplaced(true) },
	"is parked": func(s *scene) {
		if got := s.sees(parked, s.n).Detail; got != "as told" {
			s.Errorf("why it is parked: got %q, want what the child said", got)
		}
		s.becomes("parked")
		s.noNext()
	},
	"hangs after 30 s": func(s *scene) { s.hangs("did not come up", wire.Default().Boot) },
	"hangs after 15 s": func(s *scene) { s.hangs("gave no sign of life", wire.Default().Silent) },

	"drains, starts anew": (*scene).startsAnew,
	"ends quiet, drains, starts anew": func(s *scene) {
		s.isToldQuiet(false)
		s.startsAnew()
	},
	"is told": (*scene).keepsTo,
	"ends quiet, is told": func(s *scene) {
		s.isToldQuiet(false)
		s.keepsTo()
	},
	"drains, ended": (*scene).leavesForGood,
	"ends quiet, drains, ended": func(s *scene) {
		s.isToldQuiet(false)
		s.leavesForGood()
	},
	"drains": func(s *scene) { s.leavesBy(wire.Drain) },
	"stops":  func(s *scene) { s.leavesBy(wire.Stop) },

	"leaves all the same": func(s *scene) {
		s.isStill("leaving")
		s.exits("0")
		s.takesOver()
		s.finish()
	},
	"the next starts at once": func(s *scene) {
		s.endsAndStarts("child ended")
		s.finish()
	},
	"killed after 5 s, counts": func(s *scene) {
		s.isKilled()
		s.finish()
	},
	"the next has them": func(s *scene) {
		if s.state == "restarting" {
			s.waitsItsTime()
		} else {
			s.isStill("leaving")
			s.same("orders", s.orders, s.did("stub is told"))
			s.exits("0")
		}
		s.takesOver()
		s.finish()
	},
	"starts at once": func(s *scene) {
		s.takesOver()
		s.finish()
	},
	"ended when it has left": func(s *scene) {
		if s.state == "leaving: hangs" { // nor has it more time for that
			s.sees("child killed: it did not leave in time", s.n)
			s.exit = wire.ExitFailed
		} else {
			s.exits("0")
		}
		s.becomes("")
		s.noNext()
	},
	"ended": func(s *scene) {
		s.becomes("")
		if s.state == "restarting" { // not even when it would have been due
			s.awaitSome(s.T, s.did("child died")+3, "child died", "", 0)
		}
		s.noNext()
	},
	"drains, no next": func(s *scene) { s.leavesNow(wire.Drain) },
	"stops, no next":  func(s *scene) { s.leavesNow(wire.Stop) },
	"no next": func(s *scene) {
		if s.state == "restarting" { // while another holds up the end
			s.sees("children told to leave", 0)
			s.status()
			if e := s.await(s.T, "status of queue", puppet, 0); e.State != "ended" || e.AgainIn != 0 {
				s.Errorf("status of the queue: got %s, again in %v, want ended, and not again", e.State, e.AgainIn)
			}
			s.let(s.T)
		}
		s.noNext()
	},
}

// isStill: the same process is in the same state, and was not told to leave.
func (s *scene) isStill(state string) {
	s.Helper()
	if s.event == "becomes ready" {
		eventuallyTrue(s.T, "a supervisor that knows", func() bool { return s.saidReady() == 2 })
	}
	s.status()
	if got := s.shown(); got != state {
		s.Errorf("state of the queue: got %q, want %q", got, state)
	}
	s.same("processes", s.starts, s.processes())
	s.same("orders to leave", s.toLeave, s.leaveOrders())
}

func (s *scene) saidReady() (count int) {
	s.Helper()
	for _, e := range s.all(s.T, "child says", puppet, s.n) {
		if e.Is == wire.Ready {
			count++
		}
	}
	return count
}

// takesOver waits for the next process, which has the settings of the file, and makes it ready.
func (s *scene) takesOver() (settings event) {
	s.Helper()
	s.n++
	settings = s.sees("stub has settings", s.n)
	got := fmt.Sprint(settings.Worker.MaxAttempts, settings.Worker.MaxJobsPerSecond)
	if want := fmt.Sprint(s.plan.Attempts[puppet], s.plan.Rate); got != want {
		s.Errorf("max_attempts and rate of the next: got %s, want %s", got, want)
	}
	s.says("ready")
	s.becomes(map[bool]string{false: "ready", true: "quiet"}[settings.Quiet])
	return settings
}

// endsAndStarts: the process ends so, the next is started at once and told of the death.
func (s *scene) endsAndStarts(how string) (death jobs.Death, next event) {
	s.Helper()
	ended := s.sees(how, s.n)
	if ended.AgainIn != 0 {
		s.Errorf("delay before the next: got %v, want none", ended.AgainIn)
	}
	next = s.takesOver()
	if len(next.Deaths) != 1 || next.Deaths[0].N != s.n-1 || next.Deaths[0].Cause != ended.Cause {
		s.Fatalf("deaths told to the next: got %v, want one, of %d, by %q", next.Deaths, s.n-1, ended.Cause)
	}
	return next.Deaths[0], next
}

func (s *scene) startsAgain(quiet bool) {
	death, next := s.endsAndStarts("child died")
	want := map[string]string{"exits 0": "exit status 0", "dies": "child killed by signal 9"}[s.event]
	if s.state == "leaving: hangs" {
		want = "child hung: it did nothing for 30s"
	}
	if death.Cause != want || death.Ours {
		s.Errorf("death: got %q, excused %v, want %q, not excused", death.Cause, death.Ours, want)
	}
	s.isQuiet(next, quiet)
	s.finish()
}

func (s *scene) isQuiet(settings event, quiet bool) {
	s.Helper()
	if settings.Quiet != quiet {
		s.Errorf("settings of the next: got quiet %v, want %v", settings.Quiet, quiet)
	}
}

func (s *scene) isReplaced(quiet bool) {
	if got := s.sees("child asks for a new process", s.n).AgainIn; got > wire.Default().RestartMin/100 {
		s.Errorf("delay before the next: got %v, want no more than after a first failure", got)
	}
	s.isQuiet(s.takesOver(), quiet)
	s.finish()
}

func (s *scene) hangs(what string, after time.Duration) {
	s.isToldTo(wire.Stop)
	death, _ := s.endsAndStarts("child died")
	if want := fmt.Sprintf("child hung: it %s for %s", what, after/20); death.Cause != want || death.Ours {
		s.Errorf("death: got %q, excused %v, want %q, not excused", death.Cause, death.Ours, want)
	}
	s.finish()
}

func (s *scene) isKilled() {
	s.sees("child killed: it did not leave in time", s.n)
	if death, _ := s.endsAndStarts("child died"); death.Ours {
		s.Error("death: got it excused, want it counted")
	}
}

func (s *scene) startsAnew() {
	s.isToldTo(wire.Drain)
	s.endsAndStarts("child ended")
	s.finish()
}

func (s *scene) keepsTo() {
	s.isToldRate(5)
	s.same("processes", s.starts, s.processes())
	s.same("orders to leave", s.toLeave, s.leaveOrders())
	s.finish()
}

func (s *scene) leavesForGood() {
	s.isToldTo(wire.Drain)
	s.sees("child ended", s.n)
	s.becomes("")
	s.noNext()
}

// leavesBy: it leaves by itself, and with it the supervisor.
func (s *scene) leavesBy(do string) {
	s.isToldTo(do)
	s.ends(s.T, wire.ExitOK)
	s.same("processes", s.starts, s.processes())
}

// leavesNow: it is told once more to leave, and how.
func (s *scene) leavesNow(do string) {
	eventuallyTrue(s.T, "an order to leave", func() bool { return s.leaveOrders() == s.toLeave+1 })
	s.isToldTo(do)
	s.noNext()
}

// waitsItsTime: it is not started sooner than it was to be.
func (s *scene) waitsItsTime() {
	died := s.sees("child died", s.n)
	if waited := s.sees("child started", s.n+1).At.Sub(died.At); waited < died.AgainIn-time.Millisecond {
		s.Errorf("wait for the next: got %v, want %v", waited, died.AgainIn)
	}
}

func (s *scene) noNext() {
	s.finish()
	s.same("processes", s.starts, s.processes())
}

// shownAs is the state as the supervisor shows it.
func shownAs(state string) string {
	state, _, _ = strings.Cut(state, ":")
	if state == "ended" {
		return ""
	}
	return state
}
