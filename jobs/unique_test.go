package jobs_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

func TestAPendingOrRunningJobHoldsItsKey(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	first := enqueue(t, conn, keyed("k")).ID
	for _, held := range []string{
		`select`,
		`update jobs set run_at = now() + interval '1 h', attempts = 1`, // waits to retry
		`update jobs set state = 'running', epoch = 1`,
	} {
		exec(t, conn, held)
		if got := enqueue(t, conn, keyed("k")); got != (jobs.Enqueued{ID: first, Existing: true}) {
			t.Errorf("after %s: %+v, want job %d told as existing", held, got, first)
		}
	}
	for _, other := range []jobs.New{keyed("K"), keyed(" k"), keyed(""), keyed(""), {Queue: "other", Name: "Send", UniqueKey: "k"}} {
		if got := enqueue(t, conn, other); got.Existing {
			t.Errorf("queue %s key %q = %+v, want a new job", other.Queue, other.UniqueKey, got)
		}
	}
}

func TestADoneDeadOrDeletedJobHoldsNoKey(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	for _, end := range []string{
		`update jobs set state = 'dead'`, `update jobs set state = 'done'`, `delete from jobs`,
	} {
		enqueue(t, conn, keyed("k"))
		exec(t, conn, end)
		if got := enqueue(t, conn, keyed("k")); got.Existing {
			t.Errorf("after %s: %+v, want a new job", end, got)
		}
		exec(t, conn, `delete from jobs`)
	}
}

// Another transaction has just stored the key. Enqueue waits for its end; the winner is then newer than the
// statement's snapshot.
func TestEnqueueWaitsForAnotherTransactionWithTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		end      func(t *testing.T, tx pgx.Tx)
		existing bool
	}{
		"committed":   {func(t *testing.T, tx pgx.Tx) { finish(t, tx.Commit(ctx)) }, true},
		"rolled back": {func(t *testing.T, tx pgx.Tx) { finish(t, tx.Rollback(ctx)) }, false},
		"done in the same transaction": {func(t *testing.T, tx pgx.Tx) {
			_, err := tx.Exec(ctx, `update jobs set state = 'done'`)
			finish(t, err)
			finish(t, tx.Commit(ctx))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			url := testdb.New(t)
			winner, loser, watcher := testdb.Connect(t, url), testdb.Connect(t, url), testdb.Connect(t, url)
			tx, err := winner.Begin(ctx)
			finish(t, err)
			won := enqueue(t, tx, keyed("k"))
			answer := make(chan jobs.Enqueued, 1)
			failed := make(chan error, 1)
			go func() {
				got, err := jobs.EnqueueMany(ctx, loser, []jobs.New{keyed(""), keyed("k"), keyed("")})
				if err != nil || got[0].ID == 0 || got[2].ID <= got[0].ID {
					failed <- errors.Join(err, errors.New("the jobs beside it got no ids in order"))
					return
				}
				answer <- got[1]
			}()
			waitForABlockedSession(t, watcher)
			c.end(t, tx)
			select {
			case err := <-failed:
				t.Fatal(err)
			case got := <-answer:
				if got.Existing != c.existing || (got.ID == won.ID) != c.existing {
					t.Errorf("loser = %+v, winner %d; want existing %v", got, won.ID, c.existing)
				}
			}
			if got := column(t, watcher, `select count(*) from jobs where unique_key = 'k' and state = 'pending'`); got != "1" {
				t.Errorf("%s pending jobs have the key, want 1", got)
			}
		})
	}
}

func TestRepeatableReadEndsInASerializationFailure(t *testing.T) {
	url := testdb.New(t)
	a, b := testdb.Connect(t, url), testdb.Connect(t, url)
	tx, err := a.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	finish(t, err)
	defer tx.Rollback(ctx)
	_, err = tx.Exec(ctx, `select count(*) from jobs`) // takes the snapshot
	finish(t, err)
	enqueue(t, b, keyed("k"))
	_, err = jobs.Enqueue(ctx, tx, keyed("k"))
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "40001" {
		t.Errorf("error = %v, want 40001", err)
	}
}

func finish(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
