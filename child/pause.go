package child

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/handler"
	"queuekeeper/jobs"
)

// pausing is what the loop knows of pauses.
type pausing struct {
	pausedUntil time.Time
	toPause     time.Duration // what the next Step has to say of a pause
	why         string

	lanesPaused      bool // some lane has a pause
	lanesToPause     map[string]jobs.LanePause
	lanesPausedUntil map[string]time.Time // those that this process knows of
	disputed         map[string]bool      // of which the database believes that they are over, by its clock

	refusals  map[string]refusals // in a row, by lane; of the whole queue: ""
	lastDone  time.Time           // when a job ended well
	refusedAt map[int64]time.Time // jobs that were refused as often as may be: since when
}

// refusals are those that came one after the other and did not say for how long.
type refusals struct {
	n    int
	last time.Time
}

// longestPause is the longest an API can order.
const longestPause = 24 * time.Hour

// throttled pauses the queue, or the lane, as long as the API said to r. If it did not say the pause doubles, but only
// for what was started after the last one: jobs that were refused side by side are one refusal.
func (c *loop) throttled(r *run, o handler.Outcome) jobs.Ended {
	lane, what := "", "queue"
	if cmp.Or(o.Scope, jobs.Scope(c.set.Worker.PauseScope)) == jobs.ScopeLane {
		lane, what = r.Lane, "lane"
	}
	in := c.refusals[lane]
	pause := o.Delay
	if pause == 0 && r.started.After(in.last) {
		in.n++
		in.last = c.now
		c.forgetRefusals()
		c.refusals[lane] = in
	}
	if pause == 0 {
		pause = handler.Backoff(in.n-1, c.set.Times.Throttled, c.set.Times.ThrottledMax, 0)
	}
	if pause > longestPause {
		c.log.Warn("the API said later than a day: pausing a day", what, hclog.Quote(lane), "said", pause)
		pause = longestPause
	}
	if lane == "" {
		c.toPause, c.why = max(c.toPause, pause), o.Error
		c.pauseUntil(c.now.Add(pause))
		c.log.Warn("the API said later: the queue is paused", "for", pause)
	} else {
		c.pauseLane(lane, pause, o.Error)
		c.log.Warn("the API said later: a lane is paused", "lane", hclog.Quote(lane), "for", pause)
	}
	return c.excuse(r, pause, o.Error)
}

// maxThrottled is how many of a job's attempts the API may refuse before it matters whether others fare better.
const maxThrottled = 20

// excuse is the outcome of a refused attempt. It does not count, so that a daily limit kills nobody; but a job that
// was refused before lets the others pass, and one that is refused ever again while others end well is failing.
func (c *loop) excuse(r *run, pause time.Duration, text string) jobs.Ended {
	end := jobs.Ended{Kind: jobs.KindThrottled, Error: text}
	if r.Throttled > 0 {
		end.Delay = pause
	}
	if r.Throttled+1 < maxThrottled {
		return end
	}
	since, known := c.refusedAt[r.ID]
	if !known {
		c.refusedAt[r.ID] = c.now
	} else if c.lastDone.After(since) {
		delete(c.refusedAt, r.ID)
		end.Kind, end.Delay = jobs.KindFail, c.backoff(r.Counted)
	}
	return end
}

// wentWell ends a row of refusals.
func (c *loop) wentWell(r *run) {
	c.lastDone = c.now
	delete(c.refusals, "")
	delete(c.refusals, r.Lane)
	delete(c.refusedAt, r.ID)
}

// pauseUntil starts nothing until then, and nothing at once after it.
func (c *loop) pauseUntil(t time.Time) {
	if t.Before(c.pausedUntil) {
		return
	}
	c.pausedUntil = t
	c.limiter.Pause(t)
	c.unplan(nil)
}

// heardPause takes what the database says of the pause of the queue. A longer one holds at once. A shorter one, or none,
// only if somebody has changed it: that it has ended may be due to a clock that went ahead. What the database has not
// been told yet it cannot say.
func (c *loop) heardPause(asked bool, r jobs.Reply) {
	until := c.now.Add(r.Paused)
	switch {
	case r.Paused > 0 && until.After(c.pausedUntil):
		if !c.pausedUntil.After(c.now) {
			c.log.Info("the queue is paused", "for", pauseText(r), "reason", hclog.Quote(r.PauseReason))
		}
		c.pauseUntil(until)
	case c.toPause > 0 || !c.pausedUntil.After(c.now) || !asked && !r.NoPause:
	case r.Paused > 0 && c.pausedUntil.Sub(until) < time.Second: // the way there and back is in it
	default:
		c.log.Info("the pause was changed by hand", "for", pauseText(r))
		c.pausedUntil, c.more = until, true
		c.limiter.Pause(until)
	}
}

// pauseText is how long a pause will be. Of a long one Postgres tells a day at most.
func pauseText(r jobs.Reply) string {
	switch {
	case r.PauseStays:
		return "until it is resumed"
	case r.Paused >= longestPause:
		return "a day or more"
	}
	return r.Paused.Round(time.Millisecond).String()
}

// pauseLane starts nothing of a lane for so long.
func (c *loop) pauseLane(lane string, pause time.Duration, why string) {
	until := c.now.Add(pause)
	if until.Before(c.lanesPausedUntil[lane]) {
		return
	}
	c.lanesPausedUntil[lane], c.lanesPaused = until, true
	c.lanesToPause[lane] = jobs.LanePause{For: pause, Why: why}
	c.lanes.Pause(lane, until)
	c.lookAt(until)
	c.unplan(func(j jobs.Claimed) bool { return j.Lane == lane })
}

// disputedLanes have a pause here and none any more in the database, whose clock may have gone ahead.
func (c *loop) disputedLanes() (lanes []string) {
	maps.DeleteFunc(c.lanesPausedUntil, func(_ string, until time.Time) bool { return !until.After(c.now) })
	maps.DeleteFunc(c.disputed, func(lane string, _ bool) bool { return !c.lanePaused(lane) })
	return slices.Collect(maps.Keys(c.disputed))
}

// knowPauses takes what the database says of pauses of lanes. What it has not been told yet it cannot say.
func (c *loop) knowPauses(of map[string]time.Duration) {
	clear(c.lanesPausedUntil)
	clear(c.disputed)
	c.lanes.Lift(c.now)
	for lane, left := range of {
		c.knowPause(lane, left)
	}
	for lane, p := range c.lanesToPause {
		c.knowPause(lane, p.For)
	}
}

func (c *loop) knowPause(lane string, left time.Duration) {
	until := c.now.Add(left)
	c.lanesPausedUntil[lane] = until
	c.lanes.Pause(lane, until)
}

// forgetRefusals keeps what is known of refusals from growing with every lane there ever was.
func (c *loop) forgetRefusals() {
	if len(c.refusals) < 10_000 {
		return
	}
	for lane, in := range c.refusals {
		if c.now.Sub(in.last) > c.set.Times.ThrottledMax {
			delete(c.refusals, lane)
		}
	}
}

// lanePaused reports whether this process was told to start nothing of a lane.
func (c *loop) lanePaused(lane string) bool {
	return c.lanesPausedUntil[lane].After(c.now)
}
