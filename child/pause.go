package child

import (
	"time"

	"queuekeeper/handler"
	"queuekeeper/jobs"
)

// throttled pauses the queue as long as the API said to r. If it did not say the pause doubles, but only for what was
// started after the last one: jobs that were refused side by side are one refusal.
func (c *loop) throttled(r *run, o handler.Outcome) jobs.Ended {
	if r.started.After(c.throttledAt) {
		c.throttles++
		c.throttledAt = c.now
	}
	pause := o.Delay
	if pause == 0 {
		pause = handler.Backoff(c.throttles-1, c.set.Times.Throttled, c.set.Times.ThrottledMax, 0)
	}
	c.toPause, c.why = max(c.toPause, pause), o.Error
	c.pauseUntil(c.now.Add(pause))
	c.log.Warn("queue paused: the API said later", "for", pause)
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

// pauseUntil starts nothing until then, and nothing at once after it.
func (c *loop) pauseUntil(t time.Time) {
	if t.Before(c.pausedUntil) {
		return
	}
	c.pausedUntil = t
	c.pace.Empty(t)
	c.unplan()
}
