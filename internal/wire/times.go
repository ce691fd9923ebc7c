package wire

import "time"

// Times are the fixed times of the program, the ones no file sets. They are one value so that tests can run
// a whole supervisor at a fraction of them.
type Times struct {
	RestartMin    time.Duration // delay before the second restart of a child, doubling
	RestartMax    time.Duration // up to this
	RestartForget time.Duration // earlier failures are forgotten after this long ready
	ReconnectMin  time.Duration // delay before the second try to reach the database, doubling
	ReconnectMax  time.Duration // up to this
	RetryBase     time.Duration // delay before the second attempt of a job is twice this, doubling
	RetryMax      time.Duration // up to this
	Unlistened    time.Duration // the poll floor where LISTEN does not work
	Sweep         time.Duration // how often running rows nobody claimed are looked for
	Glance        time.Duration // how often a child that stands by looks whether its rival's process lives
	Throttled     time.Duration // first pause after a refusal that names no time, doubling
	ThrottledMax  time.Duration // up to this
	Stuck         time.Duration // how long after timeout and kill_after a handler counts as stuck
	Resend        time.Duration // delay before an outcome is sent again whose row was locked

	// For noticing children that hang. They are counted in ticks of whoever waits, not read from a clock: a process
	// that was suspended itself has missed nothing.
	Tick     time.Duration // how often the supervisor counts
	Beat     time.Duration // how often a child gives a sign of life
	Silent   time.Duration // without a sign of life for this long a child hangs
	Stale    time.Duration // so does one whose loop has not come round for this long
	Boot     time.Duration // and one that has not come up after this
	Hanging  time.Duration // how long a child that hangs may take to leave before it is killed
	Announce time.Duration // the process manager is told "ready" by then, whatever is not up yet
}

// Default are the times of a real run.
func Default() Times {
	return Times{
		RestartMin:    time.Second,
		RestartMax:    time.Minute,
		RestartForget: time.Minute,
		ReconnectMin:  time.Second,
		ReconnectMax:  4 * time.Second,
		RetryBase:     time.Second,
		RetryMax:      10 * time.Minute,
		Unlistened:    time.Second,
		Sweep:         time.Minute,
		Glance:        time.Second,
		Throttled:     time.Minute,
		ThrottledMax:  15 * time.Minute,
		Stuck:         time.Second,
		Resend:        250 * time.Millisecond,
		Tick:          time.Second,
		Beat:          2 * time.Second,
		Silent:        15 * time.Second,
		Stale:         30 * time.Second,
		Boot:          30 * time.Second,
		Hanging:       5 * time.Second,
		Announce:      10 * time.Second,
	}
}

// Divided returns all times divided by k, but for those that tell who hangs.
func (t Times) Divided(k time.Duration) Times {
	for _, d := range []*time.Duration{
		&t.RestartMin, &t.RestartMax, &t.RestartForget, &t.ReconnectMin, &t.ReconnectMax,
		&t.RetryBase, &t.RetryMax, &t.Unlistened, &t.Sweep, &t.Glance, &t.Throttled, &t.ThrottledMax, &t.Stuck, &t.Resend,
	} {
		*d /= k
	}
	return t
}

// Watched returns the times that tell who hangs divided by k. On a busy machine small ones find healthy children
// hanging.
func (t Times) Watched(k time.Duration) Times {
	for _, d := range []*time.Duration{&t.Tick, &t.Beat, &t.Silent, &t.Stale, &t.Boot, &t.Hanging, &t.Announce} {
		*d /= k
	}
	return t
}
