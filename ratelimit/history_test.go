package ratelimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"queuekeeper/internal/windows"
)

// history drives a Limiter and Lanes as children do, one after the other, and keeps all starts. The clock can step back; a step forward cannot be told from idle time.
type history struct {
	limits  Limits
	perLane Limit
	limiter *Limiter
	lanes   *Lanes
	now     time.Time // of the clock
	latest  time.Time // there was
	real    time.Time // what has gone by: a step back is no part of it
	starts  []started

	paceSince, lanesSince int                   // the first start under the pace in force
	counting              map[time.Duration]int // of each window: the first start that its quota counts

	paused      time.Time
	lanesPaused map[string]time.Time
	empty       time.Time // the bucket of the pace was empty then
	emptySince  int       // the first start after

	stored  State
	known   int       // starts when it was stored
	settled time.Time // when it was stored, by a clock that did not step back
}

type started struct {
	lane     string
	at, real time.Time
}

func newHistory(limits Limits, perLane Limit) *history {
	now := time.Unix(1_000_000_000, 0)
	h := &history{limits: limits, perLane: perLane, now: now, latest: now, real: now, counting: map[time.Duration]int{}, lanesPaused: map[string]time.Time{}}
	h.limiter, _ = New(limits, now, Saved{EmptyFor: longAgo})
	h.lanes = NewLanes(perLane, now, longAgo, nil)
	h.store()
	return h
}

func (h *history) goOn(d time.Duration) {
	h.now = h.now.Add(d)
	h.latest = latest(h.latest, h.now)
	h.real = h.real.Add(max(0, d))
}

// catchUp ends a step back.
func (h *history) catchUp() { h.goOn(h.latest.Sub(h.now)) }

// start waits for the turn of a lane, and then some more.
func (h *history) start(lane string, late time.Duration) {
	turn := latest(h.limiter.Next(h.now, 1), h.lanes.Next(h.now, lane))
	turn = latest(turn, h.lanesPaused[lane]) // the database does not give its jobs away before
	h.goOn(turn.Sub(h.now) + late)
	h.limiter.Start(h.now)
	h.lanes.Start(lane, h.now)
	h.starts = append(h.starts, started{lane, h.now, h.real})
}

// store is what a Step does.
func (h *history) store() {
	h.stored, h.known, h.settled = h.limiter.State(h.now), len(h.starts), h.latest
}

// emptied notes that the bucket of the pace is empty at a time of the clock.
func (h *history) emptied(at time.Time) {
	h.empty, h.emptySince = latest(h.empty, at), len(h.starts)
}

// change is what changes with other limits, wherever they come from.
func (h *history) change(limits Limits, perLane Limit) {
	if limits.Limit != h.limits.Limit {
		h.paceSince, h.emptySince = len(h.starts), len(h.starts)
		h.empty = time.Time{}
	}
	if perLane != h.perLane {
		h.lanesSince = len(h.starts)
	}
	for _, q := range limits.Quotas {
		if !slices.ContainsFunc(h.limits.Quotas, func(o Quota) bool { return o.Window == q.Window }) {
			h.counting[q.Window] = len(h.starts)
		}
	}
	h.limits, h.perLane = limits, perLane
}

func (h *history) reload(limits Limits, perLane Limit) {
	paceChanged := limits.Limit != h.limits.Limit
	h.change(limits, perLane)
	h.limiter.SetLimits(limits, h.now)
	h.lanes.SetLimit(perLane, h.now)
	if paceChanged {
		h.emptied(latest(h.now, h.paused))
	}
}

func (h *history) pause(until time.Time) {
	h.paused = until
	h.limiter.Pause(until)
	h.empty = time.Time{}
	h.emptied(until)
}

// release is a clean one; the next holder comes after a time, maybe with other limits.
func (h *history) release(away time.Duration, limits Limits, perLane Limit) error {
	h.catchUp()
	state := h.limiter.State(h.now)
	all, turns := h.lanes.EmptyFor(h.now)
	h.goOn(away)
	for lane := range turns {
		turns[lane] += away
	}
	h.change(limits, perLane)
	h.lanes = NewLanes(perLane, h.now, all+away, turns)
	return h.acquire(Saved{EmptyFor: state.EmptyFor + away, Quotas: state.Quotas, Age: away})
}

// die loses what happened since the last Step, but for how many starts there may have been, or a few more. The age of the
// state may be too little, by a clock of the database that went back.
func (h *history) die(away, ageLost time.Duration, more int, limits Limits, perLane Limit) error {
	h.catchUp()
	h.goOn(away)
	uncounted := len(h.starts) - h.known + more
	h.change(limits, perLane)
	h.emptied(latest(h.now, h.paused))
	h.lanes = NewLanes(perLane, h.now, 0, nil)
	return h.acquire(Saved{Quotas: h.stored.Quotas, Age: h.now.Sub(h.settled) - ageLost, Uncounted: uncounted})
}

// lose loses all; the starts are counted anew from what is known of them.
func (h *history) lose() error {
	h.catchUp()
	h.emptied(latest(h.now, h.paused))
	h.lanes = NewLanes(h.perLane, h.now, 0, nil)
	if err := h.acquire(Saved{Quotas: "1:2:garbage"}); err == nil {
		return fmt.Errorf("restore from garbage: got no error, want one")
	}
	for _, q := range h.limits.Quotas {
		var known []Past
		for _, s := range h.starts {
			known = append(known, Past{Ago: h.now.Sub(s.at), Starts: 1})
		}
		h.limiter.Recount(h.now, q.Window, known)
		h.counting[q.Window] = 0
	}
	h.store()
	return nil
}

func (h *history) acquire(saved Saved) (err error) {
	h.limiter, err = New(h.limits, h.now, saved)
	h.limiter.Pause(h.paused)
	h.store()
	return err
}

// fault tells what is wrong with the last start, by the definition: it looks at every window with it.
func (h *history) fault() string {
	last := h.starts[len(h.starts)-1]
	if left := latest(h.paused, h.lanesPaused[last.lane]).Sub(last.at); left > 0 {
		return fmt.Sprintf("a start %s before the end of a pause", left)
	}
	return cmp.Or(h.tooSoonAfterEmpty(), h.overQuotas(), h.overPaces(last.lane))
}

// tooSoonAfterEmpty: of an empty bucket the k-th start comes k intervals later, whatever the burst. So the first
// second after a pause, a death or a reload holds the limit.
func (h *history) tooSoonAfterEmpty() string {
	if h.limits.PerSecond == 0 || h.empty.IsZero() {
		return ""
	}
	k := len(h.starts) - h.emptySince
	interval := time.Duration(float64(time.Second) / h.limits.PerSecond)
	got, want := h.starts[len(h.starts)-1].at.Sub(h.empty), time.Duration(k)*interval
	if got < want {
		return fmt.Sprintf("start %d after the bucket was empty: got after %s, want after %s at the earliest", k, got, want)
	}
	return ""
}

// overQuotas holds the quotas even in windows that are a hundredth longer: that is for the way to whoever counts.
func (h *history) overQuotas() string {
	for _, q := range h.limits.Quotas {
		allowed := func(span time.Duration) int {
			if span < q.Window+q.Window/100 {
				return q.Starts
			}
			return math.MaxInt
		}
		if fault := overWithLast(h.since(h.counting[q.Window]), allowed); fault != "" {
			return fmt.Sprintf("%d per %s: %s", q.Starts, q.Window, fault)
		}
	}
	return ""
}

// overPaces measures lanes by the time that has gone by: a lane that is full is forgotten, and if the clock then goes
// back it has a turn at once.
func (h *history) overPaces(lane string) string {
	var ofLane []time.Time
	for _, s := range h.starts[h.lanesSince:] {
		if s.lane == lane {
			ofLane = append(ofLane, s.real)
		}
	}
	if fault := overWithLast(ofLane, h.perLane.allowed); fault != "" {
		return "lane: " + fault
	}
	return overWithLast(h.since(h.paceSince), h.limits.allowed)
}

// since returns the times of the starts from one on.
func (h *history) since(first int) (times []time.Time) {
	for _, s := range h.starts[first:] {
		times = append(times, s.at)
	}
	return times
}

// allowed is what the promise allows in the shortest window that spans so much.
func (l Limit) allowed(span time.Duration) int {
	if l.PerSecond == 0 {
		return math.MaxInt
	}
	return windows.Allowed(l.PerSecond, max(l.Burst, 1), max(windows.Shortest(l.PerSecond), span+1))
}

// overWithLast looks at all windows with the last start, from any start to any other. The clock may have gone back.
func overWithLast(times []time.Time, allowed func(span time.Duration) int) string {
	last := times[len(times)-1]
	slices.SortFunc(times, time.Time.Compare)
	at, _ := slices.BinarySearchFunc(times, last, time.Time.Compare)
	for i := range at + 1 {
		for j := at; j < len(times); j++ {
			if got, want := j-i+1, allowed(times[j].Sub(times[i])); got > want {
				return fmt.Sprintf("%d starts within %s, at most %d allowed", got, times[j].Sub(times[i]), want)
			}
		}
	}
	return ""
}
