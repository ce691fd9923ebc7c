package child

import (
	"time"

	"queuekeeper/handler"
)

// throttled pauses the queue as long as the API said to r. If it did not say the pause doubles, but only for what was
// started after the last one: jobs that were refused side by side are one refusal.
func (c *loop) throttled(r *run, o handler.Outcome) {
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
