package jobs

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"
)

// claimedRow is a job as RETURNING has it: in no order.
type claimedRow struct {
	Claimed
	runAt float64 // seconds; may be infinite
}

func (q *Queue) scanClaimed(row pgx.CollectableRow, others *bool) (claimedRow, error) {
	c := claimedRow{Claimed: Claimed{Job: Job{Queue: q.name}}}
	return c, row.Scan(&c.ID, &c.Name, (*[]byte)(&c.Args), &c.Lane, &c.Attempt, &c.Requeues, &c.Throttled, &c.Counted, &c.Limit, &c.Suspect,
		&c.runAt, others)
}

// sortByAge has the longest due first.
func sortByAge(rows []claimedRow) {
	slices.SortFunc(rows, func(a, b claimedRow) int {
		return cmp.Or(cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.ID, b.ID))
	})
}

func jobsOf(rows []claimedRow) []Claimed {
	claimed := make([]Claimed, len(rows))
	for i, row := range rows {
		claimed[i] = row.Claimed
	}
	return claimed
}

// claimedOrNot is a claimed job, or a row of nulls.
type claimedOrNot struct {
	id                                           *int64
	name, lane                                   *string
	args                                         *[]byte
	attempts, requeues, throttled, counted, most *int
	suspect                                      *bool
	runAt                                        *float64
}

func (c *claimedOrNot) fields() []any {
	return []any{&c.id, &c.name, &c.args, &c.lane, &c.attempts, &c.requeues, &c.throttled, &c.counted, &c.most, &c.suspect, &c.runAt}
}

func (c *claimedOrNot) row(queue string) claimedRow {
	return claimedRow{Claimed{
		Job:     Job{ID: *c.id, Queue: queue, Name: *c.name, Args: *c.args, Lane: *c.lane, Attempt: *c.attempts, Requeues: *c.requeues},
		Counted: *c.counted, Throttled: *c.throttled, Limit: *c.most, Suspect: *c.suspect,
	}, *c.runAt}
}
