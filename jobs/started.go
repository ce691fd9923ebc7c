package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Started is a number of starts about one time.
type Started struct {
	Ago    time.Duration
	Starts int
}

// Of each job only the last start is known, and none of those that are deleted. A job in its window has ended in it, or
// runs, or waits for its next attempt: each has an index.
const startedSQL = `
select extract(epoch from now() - max(started_at))::float8, count(*)
from (
	select started_at
	from {jobs}
	where queue = $1 and state in ('done', 'dead') and finished_at > now() - $2::float8 * interval '1 s'
	union all
	select greatest(started_at, locked_at) -- the former may be of the attempt before
	from {jobs}
	where state = 'running' and queue = $1
	union all
	select started_at
	from {jobs}
	where queue = $1 and state = 'pending' and attempts > 0
) j
where started_at > now() - $2::float8 * interval '1 s' and started_at <= now()
group by floor(extract(epoch from now() - started_at) / ($2::float8 / $3))`

// Started counts the starts of the queue's jobs in a window until now, in so many parts.
func (q *Queue) Started(ctx context.Context, window time.Duration, parts int) ([]Started, error) {
	rows, err := q.conn.Query(ctx, q.sql(startedSQL), q.name, seconds(window), parts)
	if err != nil {
		return nil, fmt.Errorf("count starts of queue %s: %w", q.name, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Started, err error) {
		var ago float64
		err = row.Scan(&ago, &s.Starts)
		s.Ago = duration(ago)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("count starts of queue %s: %w", q.name, err)
	}
	return all, nil
}
