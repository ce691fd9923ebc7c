package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// BenchmarkStep is the cost of a job to Postgres without its disk: its record and the claim of the next, in Steps of
// so many jobs.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			conn := testdb.Connect(b, testdb.New(b))
			_, err := conn.Exec(b.Context(), `insert into jobs (queue, name) select 'q', 'bench' from generate_series(1, $1)`, (b.N+1)*n)
			if err != nil {
				b.Fatal(err)
			}
			if err := jobs.PrepareSession(b.Context(), conn, "bench", time.Hour); err != nil {
				b.Fatal(err)
			}
			q, err := jobs.Schema("public").Acquire(b.Context(), conn, "q", jobs.Bid{
				Holder: jobs.Holder{Supervisor: "s", N: 1, C: 1}, TTL: time.Hour, Limits: jobs.Limits{MaxAttempts: 20},
			})
			if err != nil {
				b.Fatal(err)
			}
			var ended []jobs.Ended
			b.ResetTimer()
			for range b.N {
				reply, err := q.Step(b.Context(), jobs.Step{Ended: ended, Claim: n})
				if err != nil {
					b.Fatal(err)
				}
				if len(reply.Claimed) != n || len(reply.Recorded) != len(ended) {
					b.Fatalf("claimed %d and recorded %d, want %d and %d", len(reply.Claimed), len(reply.Recorded), n, len(ended))
				}
				ended = ended[:0]
				for _, j := range reply.Claimed {
					ended = append(ended, jobs.Ended{Ref: j.Ref(), Kind: jobs.KindDone, Started: time.Now()})
				}
			}
		})
	}
}
