package jobs

import (
	"cmp"
	"slices"
)

// Turns says how lanes take turns: each that has due jobs starts as many as its weight says, then the next does, in the
// order of their names and round again.
type Turns struct {
	Weights map[string]int // of a lane that is not there: 1
	Waiting []string       // lanes that have to wait
	One     bool           // one job of a lane, whatever its weight
	Strict  bool           // nothing overtakes a job of its lane that was started before, and one of a lane runs at a time
	Last    string         // where the round ends; "": with the last lane there is
	Narrow  bool           // Waiting has only those up to Last: look at no lane beyond, nor at the next round
}

// Served is whose turn it was, and is.
type Served struct {
	Lane     string // served last
	LaneLeft int    // so many more are its turn
	Others   bool   // there are pending jobs of other lanes than the one claimed from, due or not
	Cut      bool   // not all lanes were looked at, nor were there enough in those that were
	Beyond   bool   // there are lanes beyond the end of the round
	Top      string // the last lane there is
	Granted  int    // so many turns were granted. A lane may have had fewer jobs, or only such as are locked
}

// weight is how many jobs of a lane are one turn.
func (t Turns) weight(lane string) int {
	if t.One || t.Strict {
		return 1
	}
	return max(1, t.Weights[lane])
}

// inOrder are the jobs in the order of their turns: round by round, lane by lane, the longest due first.
func (t Turns) inOrder(rows []claimedRow, begin string, left int) []Claimed {
	sortByAge(rows)
	type place struct {
		round, part int
		lane        string
	}
	places, taken := map[int64]place{}, map[string]int{}
	for _, row := range rows {
		weight, used := t.weight(row.Lane), taken[row.Lane]
		taken[row.Lane]++
		if row.Lane == begin && left > 0 {
			used += max(0, weight-left)
		}
		places[row.ID] = place{used / weight, t.part(row.Lane, begin), row.Lane}
	}
	slices.SortStableFunc(rows, func(a, b claimedRow) int {
		p, o := places[a.ID], places[b.ID]
		return cmp.Or(cmp.Compare(p.round, o.round), cmp.Compare(p.part, o.part), cmp.Compare(p.lane, o.lane))
	})
	return jobsOf(rows)
}

// part is in which part of its round a lane comes: what is left of this one, the next one up to where this claim began,
// and the lanes that are new since this one began.
func (t Turns) part(lane, begin string) int {
	switch {
	case lane < begin:
		return 1
	case t.Last != "" && lane > t.Last:
		return 2
	}
	return 0
}
