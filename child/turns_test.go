package child

import (
	"context"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// A lane whose only job somebody has locked, as an operator at work does, is passed over: the others do not wait for
// the poll floor.
func TestLaneWithALockedJobHoldsNobodyUp(t *testing.T) {
	r := newRig(t)
	r.worker.PollInterval = time.Hour
	r.handle("do", func(context.Context, jobs.Job) error { return nil })
	r.exec(`insert into jobs (queue, name, lane) select 'q', 'do', lane from unnest('{a,b,c,c,d,e,e,e}'::text[]) lane`)
	operator := testdb.Connect(t, r.url)
	if _, err := operator.Exec(t.Context(), `begin; select from jobs where lane in ('b', 'd') for update`); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.until(`select count(*) = 6 from jobs where state = 'done'`)
	r.want(`select string_agg(lane, ' ' order by lane) from jobs where state = 'pending'`, "b d")
}
