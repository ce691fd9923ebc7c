package child

import (
	"time"

	"queuekeeper/handler"
)

// throttled pauses the queue as long as the API said, or longer each time in a row that it did not say.
func (c *loop) throttled(o handler.Outcome) {
	pause := o.Delay
	if pause == 0 {
		pause = handler.Backoff(c.throttles, c.set.Times.Throttled, c.set.Times.ThrottledMax, 0)
	}
	c.throttles++
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
