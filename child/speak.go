package child

import (
	"context"
	"maps"
	"slices"
	"time"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// speaking is what the loop knows of its talk with Postgres.
type speaking struct {
	askGone    bool      // some job of ours may have been cancelled
	goneAt     time.Time // ask then even so
	pauseNews  int       // how often somebody paused, or lifted a pause
	pauseKnown int       // so often we have asked for it since

	sweepAt   time.Time
	described bool // the row of the queue says what our limits are

	trips [32]time.Duration // how long the last Steps took
	trip  int

	retryAt time.Time         // after a failure nothing is sent before
	bare    bool              // after a failure: the next statement is the renewal alone
	single  bool              // after refused data: one outcome or one claim at a time, to find the job to blame
	skip    map[int64]refusal // jobs whose data Postgres refused
}

// refusal is a job whose data Postgres refused: it is left alone until then.
type refusal struct {
	times int
	until time.Time
}

// stepped is the answer to a Step.
type stepped struct {
	step  jobs.Step
	news  int // pauseNews when it was sent
	reply jobs.Reply
	sent  time.Time
	boot  time.Duration // when it was sent, on the boot clock
	err   error
}

// speak sends the next operation, if there is something to say.
func (c *loop) speak() {
	switch {
	case !c.due(c.retryAt):
	case !c.online:
		c.do(c.connect())
	case !c.held && c.due(c.bidAt):
		c.do(c.bid(nil))
	case !c.held:
	case c.releasing():
		c.do(c.release())
	case c.recount && !c.bare:
		c.do(c.recountQuotas())
	case c.due(c.sweepAt):
		c.do(c.sweep())
	case !c.described && !c.bare:
		c.do(c.describe())
	default:
		if step, needed := c.nextStep(); needed {
			c.do(c.step(step))
		}
	}
}

// nextStep is what there is to say now, and whether it is worth a round trip.
func (c *loop) nextStep() (s jobs.Step, needed bool) {
	s = c.told()
	if c.bare {
		return s, true
	}
	// Where notifications do not arrive, whether somebody has changed a pause is asked every now and then.
	s.AskPauses = c.pauseNews > c.pauseKnown || c.deaf && c.due(c.pollAt)
	needed = c.due(c.renewAt) || s.Pause > 0 || len(s.Lanes) > 0 || s.AskPauses
	if c.fresh || len(c.finished) > 0 && c.due(c.resendAt) {
		s.Ended = c.sendable()
		needed = needed || len(s.Ended) > 0
	}
	if c.askGone || c.due(c.goneAt) {
		s.Held = c.holding()
		needed = needed || len(s.Held) > 0
	}
	if c.single && len(s.Ended) > 0 {
		s.Ended = s.Ended[:1]
		return s, true
	}
	c.toClaim(&s)
	needed = needed || s.Claim > 0
	c.news = c.more || c.isDue(c.dueAt) || s.Suspect
	// In a backlog what is due next is of no interest, but for a suspect, which must not wait for its end.
	s.AskDue = s.Claim > 0 && c.news && (!c.full || s.Suspect || c.now.Sub(c.dueFrom) > time.Second)
	return s, needed
}

// told is what every Step says, a release too.
func (c *loop) told() jobs.Step {
	return jobs.Step{Rates: c.stored(), Starts: c.starts, Pause: c.toPause, Why: c.why, Lanes: maps.Clone(c.lanesToPause)}
}

// sendable are the outcomes Postgres may be told now.
func (c *loop) sendable() (ended []jobs.Ended) {
	for _, e := range c.finished {
		if c.due(c.skip[e.ID].until) {
			ended = append(ended, e)
		}
	}
	return ended
}

func (c *loop) step(s jobs.Step) op {
	if !c.bare { // the renewal alone carries no outcomes
		c.fresh = false
	}
	// What is heard from now on may be news to the statements.
	if s.Claim > 0 {
		c.more = false
	}
	if len(s.Held) > 0 {
		c.askGone = false
	}
	news := c.pauseNews
	within := c.opTimeout()
	return func(l *link) any {
		a := stepped{step: s, news: news, sent: time.Now(), boot: procs.BootClock()}
		a.err = l.withQueue(within, func(ctx context.Context, q *jobs.Queue) (err error) {
			a.reply, err = q.Step(ctx, s)
			return err
		})
		return a
	}
}

// answered takes the answer to any operation.
func (c *loop) answered(answer any) {
	c.now = time.Now()
	switch a := answer.(type) {
	case connected:
		c.connectedNow(a)
	case acquired:
		c.acquiredNow(a)
	case stepped:
		c.steppedNow(a)
	case swept:
		c.sweptNow(a)
	case recounted:
		c.recountedNow(a)
	case described:
		c.describedNow(a)
	case head:
		c.refuse(a.id, a.err)
	case released:
		c.releasedNow(a)
	}
}

func (c *loop) steppedNow(a stepped) {
	if a.err != nil {
		c.stepFailed(a)
		return
	}
	c.renewed(a.boot)
	c.starts -= a.step.Starts
	if a.step.Pause == c.toPause {
		c.toPause = 0
	}
	maps.DeleteFunc(c.lanesToPause, func(lane string, p jobs.LanePause) bool { return a.step.Lanes[lane] == p })
	wasPaused := c.lanesPaused
	c.lanesPaused = a.reply.LanesPaused || len(c.lanesToPause) > 0
	if a.step.AskPauses {
		c.pollAt = c.now.Add(c.poll)
		c.knowPauses(a.reply.PausedLanes)
	}
	if a.news > c.pauseKnown {
		c.pauseKnown = a.news
		c.unplan(nil) // their lane may be the one
		if wasPaused != c.lanesPaused {
			c.log.Info("pauses of lanes were changed by hand", "some_paused", c.lanesPaused)
		}
	}
	c.heardPause(a.step.AskPauses, a.reply)
	if c.bare { // only now jobs again
		c.bare = false
		return
	}
	c.single = false
	c.trips[c.trip] = c.now.Sub(a.sent)
	c.trip = (c.trip + 1) % len(c.trips)
	c.recorded(a.step.Ended, a.reply.Recorded)
	c.lose(a.reply.Gone, errGone)
	if len(a.step.Held) > 0 {
		c.goneAt = c.now.Add(c.poll)
	}
	c.failures = 0
	c.askGone = c.askGone || len(a.reply.Recorded) < len(a.step.Ended)
	c.report(wire.Ready, "")
	c.claimed(a.step, a.reply)
}

// recorded forgets what Postgres has acknowledged. The rest was locked by somebody, or is gone.
func (c *loop) recorded(sent []jobs.Ended, ids []int64) {
	if len(sent) == 0 {
		return
	}
	in := make(map[int64]bool, len(ids))
	for _, id := range ids {
		in[id] = true
		delete(c.skip, id)
	}
	for _, e := range sent {
		switch {
		case !in[e.ID]:
		case e.Delay > 0:
			c.lookAt(c.now.Add(e.Delay))
		case e.Kind != jobs.KindDone && e.Kind != jobs.KindDead:
			c.more = true // it keeps its place
		}
	}
	c.finished = slices.DeleteFunc(c.finished, func(e jobs.Ended) bool { return in[e.ID] })
	c.more = c.more || c.strict() // the lanes of these may go on
	c.resendAt = c.now.Add(c.set.Times.Resend)
}
