package jobs_test

import (
	"slices"
	"strings"
	"testing"
)

// found is the outcome of a search.
type found struct {
	states int
	extra  int8     // the most starts that one acquire charged though they never were
	bad    string   // "": nothing
	trace  []string // how it came to that
}

// edge is a move between two states, by their numbers.
type edge struct{ from, to int32 }

// search goes through everything that can happen, the shortest histories first, until something is wrong.
func (r rules) search() found {
	start := r.start()
	at := map[state]int32{start: 0}
	states := []state{start}
	came := []int32{0} // from which state
	by := []event{{}}  // and how
	var edges []edge
	var extra int8
	wrong := func(i int32, last event, bad string) found {
		trace := []string{last.String()}
		for ; i != 0; i = came[i] {
			trace = append(trace, by[i].String())
		}
		slices.Reverse(trace)
		return found{len(states), extra, bad, trace}
	}
	for i := int32(0); int(i) < len(states); i++ {
		from := states[i]
		next := moves{rules: r, from: from}
		next.find()
		for _, m := range next.all {
			if m.bad == "" && !r.failover {
				m.bad = from.goesBack(&m.to) + m.to.broken()
			}
			if m.bad != "" {
				return wrong(i, m.event, m.bad)
			}
			extra = max(extra, m.extra)
			to, known := at[m.to]
			if !known {
				to = int32(len(states))
				at[m.to] = to
				states, came, by = append(states, m.to), append(came, i), append(by, m.event)
			}
			edges = append(edges, edge{i, to})
		}
	}
	if i := hopeless(states, edges); i >= 0 && !r.failover {
		return wrong(i, event{}, "nothing that may still happen ends all jobs")
	}
	return found{states: len(states), extra: extra}
}

// hopeless finds a state from which no way leads to the end of all jobs; -1: none.
func hopeless(states []state, edges []edge) int32 {
	last := make([]int32, len(states)) // of the edges into a state, from 1; 0: none
	before := make([]int32, len(edges)+1)
	for i, e := range edges {
		last[e.to], before[i+1] = int32(i+1), last[e.to]
	}
	hope := make([]bool, len(states))
	var open []int32
	for i := range states {
		if states[i].over() {
			hope[i], open = true, append(open, int32(i))
		}
	}
	for len(open) > 0 {
		i := last[open[len(open)-1]]
		open = open[:len(open)-1]
		for ; i > 0; i = before[i] {
			if from := edges[i-1].from; !hope[from] {
				hope[from], open = true, append(open, from)
			}
		}
	}
	return int32(slices.Index(hope, false))
}

func (s *state) over() bool {
	return !slices.ContainsFunc(s.db.rows[:], func(r row) bool { return r.state != done })
}

func TestNoOrderOfEventsBreaksThePromises(t *testing.T) {
	for name, r := range map[string]rules{
		"one job":   {jobs: 1, faults: 2},
		"two jobs":  {jobs: 2, faults: 1},
		"failovers": {jobs: 1, faults: 1, failover: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.search()
			t.Logf("%d states", got.states)
			if got.bad != "" {
				t.Errorf("%s:\n%s", got.bad, strings.Join(got.trace, "\n"))
			}
		})
	}
}

// A search that finds nothing proves nothing unless it finds what is there: each rule, when broken, breaks a promise.
func TestTheSearchFindsWhatABrokenRuleDoes(t *testing.T) {
	for name, c := range map[string]struct {
		rules
		want string
	}{
		"may take over from itself": {
			rules{jobs: 1, faults: 1, takesOverFromItself: true}, "a job was brought back while its handler runs"},
		"fence by epoch only, after a failover": {
			rules{jobs: 1, faults: 1, failover: true, fencesByEpochOnly: true}, "one who does not hold the queue was served"},
		"ask what is mine in place of acquiring": {
			rules{jobs: 1, faults: 1, asksWhatIsMine: true}, "a job runs that its holder does not know of: it is stuck"},
		"a snapshot taken before the wait": {
			rules{jobs: 1, faults: 1, oldSnapshot: true}, "a running job is under an epoch that is over: it is stuck"},
		"a child that goes on when its lease has run out": {
			rules{jobs: 1, faults: 1, ignoresItsEnd: true}, "a job was brought back while its handler runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.search()
			if got.bad != c.want {
				t.Errorf("found %q, want %q", got.bad, c.want)
			}
			t.Logf("%s, after %d states:\n%s", got.bad, got.states, strings.Join(got.trace, "\n"))
		})
	}
}
