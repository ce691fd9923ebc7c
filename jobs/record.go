package jobs

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// The one place that decides between pending, done and dead. An outcome is fenced by its attempt, its row's
// epoch and the lease; a row somebody has locked is left for the next Step. started_at and finished_at are the
// last attempt's: of a death nobody knows the start, so the time of the claim stands in; an attempt that was
// excused before its start leaves both.
const recordSQL = `
update {jobs} j
set state = case when o.kind = 'done' then 'done'
	             when o.kind = 'dead' or (o.kind = 'fail' and j.attempts - j.excused >= j.max_attempts) then 'dead'
	             else 'pending' end,
	excused = j.excused + (o.kind in ('excused', 'throttled'))::int,
	throttled = j.throttled + (o.kind = 'throttled')::int,
	run_at = case when o.delay > 0 then now() + o.delay * interval '1 s' else j.run_at end,
	started_at = case when o.age is not null then now() - o.age * interval '1 s'
	                  when o.kind = 'excused' then j.started_at
	                  else j.locked_at end,
	finished_at = case when o.kind = 'excused' and o.age is null then j.finished_at else now() end,
	last_error = case when o.kind = 'done' then null else coalesce(nullif(o.error, ''), j.last_error) end,
	epoch = null, locked_at = null, locked_by = null
from (
	select r.ctid as place, o.*
	from unnest($4::bigint[], $5::int[], $6::bigint[], $7::text[], $8::float8[], $9::float8[], $10::text[])
		as o(id, attempt, epoch, kind, delay, age, error)
	join {jobs} r on r.id = o.id
	where r.attempts = o.attempt and r.epoch = o.epoch -- only a running job has one
		and exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3)
	for no key update of r skip locked
) o
where j.ctid = o.place -- and nothing more: another condition would be another way to look for the rows
returning j.id`

// record adds the ends of jobs that run under our epoch to a batch.
func (q *Queue) record(b *pgx.Batch, ended []Ended, recorded *[]int64) {
	epochs := slices.Repeat([]int64{q.epoch}, len(ended))
	b.Queue(q.sql(recordSQL), q.recordArgs(ended, epochs)...).Query(func(rows pgx.Rows) (err error) {
		if *recorded, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		return nil
	})
}

// recordArgs are the arguments of recordSQL; epochs are what the rows say, not what the lease says.
func (q *Queue) recordArgs(ended []Ended, epochs []int64) []any {
	n := len(ended)
	ids, attempts := make([]int64, n), make([]int, n)
	kinds, delays, ages, errors := make([]string, n), make([]float64, n), make([]*float64, n), make([]string, n)
	for i, e := range ended {
		ids[i], attempts[i] = e.ID, e.Attempt
		kinds[i], delays[i], errors[i] = string(e.Kind), seconds(e.Delay), e.Error
		if !e.Started.IsZero() {
			age := seconds(time.Since(e.Started))
			ages[i] = &age
		}
	}
	return []any{q.name, q.epoch, q.holder, ids, attempts, epochs, kinds, delays, ages, errors}
}
