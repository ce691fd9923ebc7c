package jobs_test

import (
	"slices"
	"strings"
	"testing"
)

// What the model of model_test.go knows of starts. It mirrors the counts in renewSQL, takeSQL and Release, what a Sweep
// does with them, and stored and startRates of package child. A count is the number of all starts there ever were: when
// they were is the business of package ratelimit.
//
// Whoever acquires the queue must count at least the starts that really happened, by whomever; and of those that did not
// it may count, for each acquire from the dead, no more than there were jobs in hand.

// startRule is one rule of counting starts that is not kept.
type startRule int8

const (
	noRule startRule = iota
	forgetsWaiting
	forgetsRows
	settlesWithoutCounting
	countsAtTheReply
	waitingWithoutTheRows // an acquire counts the rows it finds, but does not store them
	resetsWaiting
	asIfAllHadStarted // and a release stores no other count
)

// begin starts a job.
func (w *world) begin(i, j int) {
	k := &w.kids[i]
	k.work[j].is = started
	if !w.countsStarts {
		return
	}
	w.starts++
	k.counted++
	if w.db.epoch != k.epoch {
		w.db.over-- // who has acquired since has not counted it
	}
}

// waiting is how many claimed jobs have not started.
func (k *kid) waiting() (n int8) {
	for _, j := range k.work {
		if j.is == claimed {
			n++
		}
	}
	return n
}

// store adds to a statement what is known of the starts when it is sent.
func (w *world) store(k *kid) {
	if !w.countsStarts || k.said.kind != step && k.said.kind != release {
		return
	}
	k.said.counted, k.said.waiting = k.counted, k.waiting()
	switch w.breaks {
	case forgetsWaiting:
		k.said.waiting = 0
	case countsAtTheReply:
		k.said.counted = k.answered
	case asIfAllHadStarted:
		k.said.counted, k.said.waiting = k.counted+k.waiting(), 0
	}
}

// settle stores what a Step or a release says of the starts. What it claims is marked afterwards.
func (w *world) settle(m *message) {
	if w.breaks != settlesWithoutCounting {
		w.db.counted = m.counted
	}
	w.db.waiting = m.waiting
	for j := range w.db.rows {
		w.db.rows[j].fresh = false
	}
}

// charge counts the starts for whoever acquires the queue, before it brings anything back.
func (w *world) charge() (counted int8) {
	if !w.countsStarts {
		return 0
	}
	db, inHand, found := &w.db, int8(0), int8(0)
	free := db.holder.supervisor == 0
	for _, r := range db.rows {
		if r.state == running && !free {
			inHand++
			if r.fresh && w.breaks != forgetsRows {
				found++
			}
		}
	}
	counted = db.counted + db.waiting + found
	switch w.breaks {
	case resetsWaiting:
		db.waiting = 0
	case waitingWithoutTheRows:
	default:
		db.waiting += found
	}
	w.extra = counted - w.starts - db.over
	if w.extra > inHand {
		w.bad = "an acquire charged more starts than there were jobs in hand"
	}
	db.over = counted - w.starts
	return counted
}

// goOn lets a child count on from what it found at its acquire.
func (w *world) goOn(k *kid, counted int8) {
	k.counted = counted
	if counted < w.starts {
		w.bad = "who has the queue now knows of fewer starts than there were"
	}
}

// steps are the Steps a child may send.
func (m *moves) steps(i int) {
	m.add("CHILD sends a Step", i, 0, 0, func(w *world) { w.say(i, step) })
	if m.countsStarts {
		m.add("CHILD renews its lease", i, 0, 0, func(w *world) { w.claimUpTo(i, 0) })
	}
	if m.countsStarts && m.jobs > 1 {
		m.add("CHILD sends a Step for one job", i, 0, 0, func(w *world) { w.claimUpTo(i, 1) })
	}
}

func (w *world) claimUpTo(i int, n int8) {
	w.say(i, step)
	w.kids[i].said.claim = n
}

// others is what may be done by others than children.
func (m *moves) others() {
	db := &m.from.db
	runs := func(r row) bool { return r.state == running }
	if m.countsStarts && slices.ContainsFunc(db.rows[:], runs) && (db.holder.supervisor == 0 || db.left == 0) {
		m.add("a steward sweeps the queue", 0, 0, 0, func(w *world) { w.sweep() })
	}
	for j, r := range db.rows {
		if m.cancels && runs(r) {
			m.add("an operator cancels JOB", 0, j, 1, func(w *world) { w.db.rows[j].end(done) })
		}
	}
}

// sweep acquires the queue and gives it back with the counts as they are then.
func (w *world) sweep() {
	w.acquire(&message{kind: acquire, from: connection{process{int8(len(w.kids) + 1), 1}, 1}})
	w.db.holder, w.db.left = connection{}, 0
}

// forgetStarts takes what really started from all counts that somebody will still read, for only the differences matter,
// and drops the others.
func (w *world) forgetStarts() {
	if !w.countsStarts {
		return
	}
	w.db.counted -= w.starts
	for i := range w.kids {
		k := &w.kids[i]
		k.counted -= w.starts
		k.answered -= w.starts
		if !k.held {
			k.counted = 0
		}
		if !k.held || w.breaks != countsAtTheReply {
			k.answered = 0
		}
		for _, m := range [...]*message{&k.said, &w.late[i]} {
			m.counted -= w.starts
			if m.kind == silence || m.answered != (m.kind == acquire) {
				m.counted, m.waiting = 0, 0
			}
			if m.answered {
				m.claim = 0
			}
		}
	}
	w.starts = 0
}

func TestNoOrderOfEventsLosesAStart(t *testing.T) {
	for name, r := range map[string]rules{
		"one job":  {jobs: 1, faults: 2, countsStarts: true},
		"two jobs": {jobs: 2, faults: 1, countsStarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.search()
			t.Logf("%d states; an acquire charges at most %d starts too many", got.states, got.extra)
			if got.bad != "" {
				t.Errorf("%s:\n%s", got.bad, strings.Join(got.trace, "\n"))
			}
			if got.extra != int8(r.jobs) {
				t.Errorf("an acquire charges at most %d starts too many, want %d", got.extra, r.jobs)
			}
		})
	}
}

func TestTheSearchFindsAStartThatABrokenRuleLoses(t *testing.T) {
	const tooFew = "who has the queue now knows of fewer starts than there were"
	for name, c := range map[string]struct {
		rules
		want string
	}{
		"waiting is not stored":                  {rules{jobs: 1, faults: 1, breaks: forgetsWaiting}, tooFew},
		"the claims of the last Step are not":    {rules{jobs: 1, faults: 1, breaks: forgetsRows}, tooFew},
		"settled without the count":              {rules{jobs: 1, faults: 1, breaks: settlesWithoutCounting}, tooFew},
		"counted when the last answer came":      {rules{jobs: 1, faults: 1, breaks: countsAtTheReply}, tooFew},
		"an acquire does not store what it adds": {rules{jobs: 1, faults: 2, breaks: waitingWithoutTheRows}, tooFew},
		"an acquire resets waiting":              {rules{jobs: 1, faults: 2, breaks: resetsWaiting}, tooFew},
		"as if all had started, even at a release": {
			rules{jobs: 1, faults: 1, breaks: asIfAllHadStarted}, "an acquire charged more starts than there were jobs in hand"},
		"a cancelled job, which is no row that runs": {rules{jobs: 1, faults: 2, cancels: true}, tooFew},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.countsStarts = true
			got := c.search()
			if got.bad != c.want {
				t.Errorf("found %q, want %q", got.bad, c.want)
			}
			t.Logf("%s, after %d states:\n%s", got.bad, got.states, strings.Join(got.trace, "\n"))
		})
	}
}
