package jobs_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// In a transaction of pgx: the job exists if, and only if, the transaction commits.
func ExampleEnqueue() {
	databaseURL, done := exampleDatabase()
	defer done()

	ctx := context.Background()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		log.Panic(err)
	}
	defer conn.Close(ctx)

	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// … whatever else belongs to the transaction …
		job, err := jobs.Enqueue(ctx, tx, jobs.New{
			Queue:     "github",
			Name:      "SyncIssues",
			Args:      map[string]int{"company_id": 1},
			UniqueKey: "sync/1",
		})
		fmt.Println(job.ID, job.Existing)
		return err
	})
	if err != nil {
		log.Panic(err)
	}
	// Output: 1 false
}

func ExampleEnqueueMany() {
	databaseURL, done := exampleDatabase()
	defer done()

	ctx := context.Background()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		log.Panic(err)
	}
	defer conn.Close(ctx)

	var mails []jobs.New
	for _, to := range []string{"ann@example.org", "bob@example.org"} {
		mails = append(mails, jobs.New{Queue: "postmark", Name: "Send", Args: map[string]string{"to": to}})
	}
	stored, err := jobs.EnqueueMany(ctx, conn, mails)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(stored[0].ID, stored[1].ID)
	// Output: 1 2
}

// exampleDatabase is a new database with the tables, and what ends it.
func exampleDatabase() (url string, done func()) {
	e := &example{}
	return testdb.New(e), e.done
}

// example is as much of a testing.TB as an Example needs.
type example struct {
	testing.TB
	cleanups []func()
}

func (e *example) Helper()                           {}
func (e *example) Cleanup(f func())                  { e.cleanups = append(e.cleanups, f) }
func (e *example) Fatal(args ...any)                 { log.Panic(args...) }
func (e *example) Fatalf(format string, args ...any) { log.Panicf(format, args...) }

func (e *example) done() {
	for _, f := range e.cleanups {
		f()
	}
}
