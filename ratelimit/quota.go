package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quota is never more than so many starts in any window of that length.
type Quota struct {
	Starts int           // at least 1
	Window time.Duration // a second or more
}

// Slices is in how many parts of the window starts are counted. A window touches at most one slice more than it is
// long; one more is for the way to whoever counts, which is not the same for all starts. So the starts of a window come
// in 102 parts of it at least: 98 % can be reached.
const Slices = 100

const counted = Slices + 2

// counter holds the starts of one queue to one Quota.
type counter struct {
	quota  Quota
	began  time.Time // when the first of counts began; never goes back
	counts [counted]int
}

func newCounter(quota Quota, now time.Time) *counter { return &counter{quota: quota, began: now} }

// slice is rounded up: shorter ones would not cover the window.
func (c *counter) slice() time.Duration {
	return (c.quota.Window + Slices - 1) / Slices
}

// passed is how many slices have begun from the first of counts until t.
func (c *counter) passed(t time.Time) int {
	return int(max(0, min(t.Sub(c.began)/c.slice(), counted)))
}

// left is how many starts are allowed at t, if none comes before. It may be below 0: the quota was more once.
func (c *counter) left(t time.Time) int {
	left := c.quota.Starts
	for _, n := range c.counts[:counted-c.passed(t)] {
		left -= n
	}
	return left
}

// next is when the n-th start from now on is allowed, counted from 1. One beyond the quota itself has to wait for those
// before it; of such a one only the time before which it cannot be is told.
func (c *counter) next(now time.Time, n int) time.Time {
	n = min(n, c.quota.Starts)
	for i := c.passed(now); i < counted; i++ {
		if t := latest(now, c.began.Add(time.Duration(i)*c.slice())); c.left(t) >= n {
			return t
		}
	}
	return latest(now, c.began.Add(counted*c.slice()))
}

// start counts starts at a time. A time that has gone back counts as the latest there was.
func (c *counter) start(at time.Time, n int) {
	c.advance(at)
	c.counts[0] += n
}

// advance begins the slice of now.
func (c *counter) advance(now time.Time) {
	passed := int64(now.Sub(c.began) / c.slice())
	if passed <= 0 {
		return
	}
	kept := counted - int(min(passed, counted))
	copy(c.counts[counted-kept:], c.counts[:kept])
	clear(c.counts[:counted-kept])
	c.began = c.began.Add(time.Duration(passed) * c.slice())
}

// text is the counter as of now: the window, how long ago its first slice began, both in nanoseconds, and the counts
// from there back.
func (c *counter) text(now time.Time) string {
	c.advance(now)
	last := counted
	for last > 0 && c.counts[last-1] == 0 {
		last--
	}
	counts := make([]string, last)
	for i := range counts {
		counts[i] = strconv.FormatInt(int64(c.counts[i]), 36)
	}
	began := max(0, now.Sub(c.began))
	return fmt.Sprintf("%d:%d:%s", c.quota.Window, began, strings.Join(counts, ","))
}

var errUnreadable = errors.New("not as it was written")

// readCounter is what text wrote, that long after it was.
func readCounter(text string, now time.Time, age time.Duration) (*counter, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return nil, errUnreadable
	}
	window, err := strconv.ParseInt(parts[0], 10, 64)
	began, beganErr := strconv.ParseInt(parts[1], 10, 64)
	if err = cmp.Or(err, beganErr); err != nil {
		return nil, errUnreadable
	}
	c := newCounter(Quota{Window: time.Duration(window)}, now)
	if c.quota.Window < time.Second || c.quota.Window > longest || began < 0 || time.Duration(began) >= c.slice() {
		return nil, errUnreadable
	}
	c.began = now.Add(-time.Duration(began) - max(0, min(age, 2*longest)))
	return c, c.readCounts(parts[2])
}

// longest is more than any window of a file.
const longest = 100 * 24 * time.Hour

func (c *counter) readCounts(text string) error {
	if text == "" {
		return nil
	}
	counts := strings.Split(text, ",")
	if len(counts) > counted {
		return errUnreadable
	}
	for i, digits := range counts {
		n, err := strconv.ParseUint(digits, 36, 31)
		if err != nil {
			return errUnreadable
		}
		c.counts[i] = int(n)
	}
	return nil
}

// quotas are the counters of a queue.
type quotas []*counter

func (q quotas) text(now time.Time) string {
	texts := make([]string, len(q))
	for i, c := range q {
		texts[i] = c.text(now)
	}
	return strings.Join(texts, ";")
}

// readQuotas is what text wrote, that long after it was.
func readQuotas(text string, now time.Time, age time.Duration) (quotas, error) {
	if text == "" {
		return nil, nil
	}
	var read quotas
	for _, part := range strings.Split(text, ";") {
		c, err := readCounter(part, now, age)
		if err != nil {
			return nil, fmt.Errorf("read quotas %.100q: %w", text, err)
		}
		read = append(read, c)
	}
	return read, nil
}

// of is the counters for these quotas: the one of the same window goes on, for what started has started, whatever is
// allowed now. Of another window nothing was counted: it begins now.
func (q quotas) of(limits []Quota, now time.Time) quotas {
	made := make(quotas, len(limits))
	for i, limit := range limits {
		at := slices.IndexFunc(q, func(c *counter) bool { return c.quota.Window == limit.Window })
		if at < 0 {
			made[i] = newCounter(limit, now)
			continue
		}
		made[i] = q[at]
		made[i].quota = limit
	}
	return made
}
