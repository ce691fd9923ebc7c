package child

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/jobs"
)

// eventuallyLogged waits for a text in the log.
func eventuallyLogged(r *rig, text string) {
	r.t.Helper()
	eventually.OK(r.t, 20*time.Second, func() error {
		if !r.log.has(text) {
			return fmt.Errorf("log: got no %q:\n%s", text, r.log)
		}
		return nil
	})
}

// pausesLogged are the lengths of the pauses that an API ordered, as the log tells them.
func (r *rig) pausesLogged() (all []string) {
	for _, found := range regexp.MustCompile(`the API said later: (?:the queue|a lane) is paused:.* for=(\S+)`).FindAllStringSubmatch(r.log.String(), -1) {
		all = append(all, found[1])
	}
	return all
}

func TestARefusalThatNamesATimeDoublesNoPauseOfOneThatNamesNone(t *testing.T) {
	for _, scope := range []jobs.Scope{jobs.ScopeQueue, jobs.ScopeLane} {
		t.Run(string(scope), func(t *testing.T) {
			r := newRig(t)
			r.set.Times.Throttled, r.set.Times.ThrottledMax = 20*time.Millisecond, time.Hour
			said, not := jobs.ThrottledIn(scope, 10*time.Millisecond, err429), jobs.ThrottledIn(scope, 0, err429)
			var s starts
			r.handle("call", s.refuses(said, said, said, not, said, not, said, said, not))
			r.lane("a", "call", 1)
			r.start()
			r.done(1)
			want := "10ms 10ms 10ms 20ms 10ms 40ms 10ms 10ms 80ms"
			if got := strings.Join(r.pausesLogged(), " "); got != want {
				t.Errorf("pauses: got %s, want %s\n%s", got, want, r.log)
			}
		})
	}
}

// An API may answer with a page. The row of a queue is written all the time.
func TestTheReasonOfARefusalIsCut(t *testing.T) {
	long := errors.New("429 " + strings.Repeat("ä", 3000))
	for scope, length := range map[jobs.Scope]string{
		jobs.ScopeQueue: `select coalesce(char_length(pause_reason), 0) from queues`,
		jobs.ScopeLane:  `select coalesce(max(char_length(pause_reason)), 0) from lanes`,
	} {
		t.Run(string(scope), func(t *testing.T) {
			r := newRig(t)
			var s starts
			r.handle("call", s.refuses(jobs.ThrottledIn(scope, time.Hour, long)))
			r.lane("a", "call", 1)
			r.start()
			r.until(`select throttled = 1 from jobs`)
			if got := value[int](r, length); got == 0 || got > 500 {
				t.Errorf("characters of the reason that are kept: got %d, want 500 at most, and some", got)
			}
		})
	}
}
