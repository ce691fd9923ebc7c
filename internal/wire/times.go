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
	}
}

// Divided returns all times divided by k.
func (t Times) Divided(k time.Duration) Times {
	for _, d := range []*time.Duration{
		&t.RestartMin, &t.RestartMax, &t.RestartForget, &t.ReconnectMin, &t.ReconnectMax,
		&t.RetryBase, &t.RetryMax, &t.Unlistened, &t.Sweep, &t.Glance, &t.Throttled, &t.ThrottledMax, &t.Stuck, &t.Resend,
	} {
		*d /= k
	}
	return t
}
