package jobs_test

import (
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
	countsAtTheReply // what has started since is in no count, nor does it wait any more
	noRowsStored     // an acquire counts the rows it finds, and does not store that
	resetsWaiting
	asIfAllHadStarted // is what is stored, at a release too
	forgetsCancelled
)

const (
	tooFew  = "who holds the queue knows of fewer starts than there were"
	tooMany = "an acquire charged more starts than there were jobs in hand"
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
	// Nothing depends any more on the starts that were charged though they never were; to take them for real ones makes
	// fewer states, and they cannot make up for others.
	w.starts, w.db.over = w.starts+w.db.over, 0
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
	case noRowsStored:
	case resetsWaiting:
		db.waiting = 0
	default:
		db.waiting += found
	}
	w.extra = counted - w.starts - db.over
	if w.extra > inHand && !w.cancels { // one that was cancelled is charged, whether it had started or not
		w.bad = tooMany
	}
	db.over = counted - w.starts
	return counted
}

// cancel ends a running job, as an operator does.
func (w *world) cancel(j int) {
	r := &w.db.rows[j]
	if r.fresh && w.breaks != forgetsCancelled {
		w.db.waiting++
	}
	r.end(done)
}

// loses reports whether the child that holds the queue, and knows it, counts fewer starts than there were. What one
// counts that no longer holds it matters to nobody: it starts nothing, and what it says is not stored.
func (s *state) loses() bool {
	for i := range s.kids {
		if k := &s.kids[i]; s.holds(i) && k.counted < s.starts {
			return true
		}
	}
	return false
}

// forgetStarts takes what really started from all counts that somebody will still read, for only the differences matter,
// and drops the others.
func (w *world) forgetStarts() {
	if !w.countsStarts {
		return
	}
	w.db.counted -= w.starts
	open := int8(0)
	for _, r := range w.db.rows {
		if r.state != done {
			open++
		}
	}
	for i := range w.kids {
		k := &w.kids[i]
		k.counted -= w.starts
		k.answered -= w.starts
		reads := k.held && k.epoch == w.db.epoch
		if !reads {
			k.counted = 0
		}
		if !reads || w.breaks != countsAtTheReply {
			k.answered = 0
		}
		for _, m := range [...]*message{&k.said, &w.late[i]} {
			m.counted -= w.starts
			if m.kind == silence || m.answered != (m.kind == acquire) || m.epoch < w.db.epoch {
				m.counted, m.waiting = 0, 0
			}
			if m.answered || m.epoch < w.db.epoch {
				m.claim = 0
			}
			m.claim = min(m.claim, open)
		}
	}
	w.starts = 0
}

func TestNoOrderOfEventsLosesAStart(t *testing.T) {
	for name, r := range map[string]rules{
		"one job":                  {jobs: 1, faults: 1},
		"one job, one supervisor":  {jobs: 1, faults: 3, alone: true},
		"two jobs, one supervisor": {jobs: 2, faults: 1, alone: true},
		"one that is cancelled":    {jobs: 1, faults: 2, alone: true, cancels: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.countsStarts = true
			got := r.search()
			t.Logf("%d states; an acquire charges at most %d starts too many", got.states, got.extra)
			if got.bad != "" {
				t.Errorf("%s:\n%s", got.bad, strings.Join(got.trace, "\n"))
			}
			if got.extra != int8(r.jobs) && !r.cancels {
				t.Errorf("an acquire charges at most %d starts too many, want %d", got.extra, r.jobs)
			}
		})
	}
}

func TestTheSearchFindsWhatABrokenRuleOfCountingDoes(t *testing.T) {
	for name, c := range map[string]struct {
		rules
		want string
	}{
		"waiting is not stored":                  {rules{faults: 1, breaks: forgetsWaiting}, tooFew},
		"what the last Step claimed is left out": {rules{faults: 1, breaks: forgetsRows}, tooFew},
		"settled without the count":              {rules{faults: 1, breaks: settlesWithoutCounting}, tooFew},
		"counted when the last answer came":      {rules{faults: 1, breaks: countsAtTheReply}, tooFew},
		"an acquire does not store what it adds": {rules{faults: 2, breaks: noRowsStored}, tooFew},
		"an acquire resets waiting":              {rules{faults: 2, breaks: resetsWaiting}, tooFew},
		"as if all had started":                  {rules{faults: 1, breaks: asIfAllHadStarted}, tooMany},
		"a cancelled job is forgotten":           {rules{faults: 2, cancels: true, breaks: forgetsCancelled}, tooFew},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.rules.find(t, c.want)
		})
	}
}

func (r rules) find(t *testing.T, want string) {
	t.Helper()
	r.jobs, r.countsStarts = 1, true
	got := r.search()
	if got.bad != want {
		t.Errorf("found %q, want %q", got.bad, want)
	}
	t.Logf("%s, after %d states:\n%s", got.bad, got.states, strings.Join(got.trace, "\n"))
}
