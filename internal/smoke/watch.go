package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// done waits until all jobs are, and gives up when one is dead or the supervisor has ended.
func done(ctx context.Context, db *pgx.Conn, queues []queue, ended <-chan struct{}) error {
	want := 0
	for _, q := range queues {
		want += q.jobs
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		n, dead, err := progress(ctx, db)
		switch {
		case err != nil:
			return err
		case dead > 0 || n == want:
			return nil // the report tells which
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d jobs done in the time there was", n, want)
		case <-ended:
			return errors.New("the supervisor ended by itself")
		case <-look.C:
		}
	}
}

const progressSQL = `
select count(*) filter (where state = 'done'), count(*) filter (where state = 'dead')
from jobs`

func progress(ctx context.Context, db *pgx.Conn) (done, dead int, err error) {
	err = db.QueryRow(ctx, progressSQL).Scan(&done, &dead)
	return done, dead, err
}

const heldSQL = `select count(*) from queues where supervisor is not null`

// free reports leases that are held though nobody is there.
func free(ctx context.Context, db *pgx.Conn) error {
	var held int
	if err := db.QueryRow(ctx, heldSQL).Scan(&held); err != nil {
		return err
	}
	if held > 0 {
		return fmt.Errorf("%d leases are held after the supervisor ended, want 0", held)
	}
	return nil
}
