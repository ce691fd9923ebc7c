package jobs_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// What the two interfaces are for.
var (
	_ jobs.DB    = (*pgx.Conn)(nil)
	_ jobs.DB    = (*pgxpool.Pool)(nil)
	_ jobs.DB    = (pgx.Tx)(nil)
	_ jobs.SQLDB = (*sql.DB)(nil)
	_ jobs.SQLDB = (*sql.Conn)(nil)
	_ jobs.SQLDB = (*sql.Tx)(nil)
)

func TestAJobOfATransactionExistsIfItCommits(t *testing.T) {
	url := testdb.New(t)
	conn := testdb.Connect(t, url)
	db, err := sql.Open("pgx", url)
	finish(t, err)
	defer db.Close()
	for _, commit := range []bool{true, false} {
		tx, err := db.BeginTx(ctx, nil)
		finish(t, err)
		_, err = jobs.EnqueueManySQL(ctx, tx, []jobs.New{{Queue: "mail", Name: "Send"}, {Queue: "mail", Name: "Send"}})
		finish(t, err)
		if commit {
			finish(t, tx.Commit())
		} else {
			finish(t, tx.Rollback())
		}
	}
	if got := column(t, conn, `select count(*) from jobs`); got != "2" {
		t.Errorf("%s jobs stored, want the 2 of the transaction that committed", got)
	}
}

func TestDatabaseSQLTellsTheExistingJob(t *testing.T) {
	db, err := sql.Open("pgx", testdb.New(t))
	finish(t, err)
	defer db.Close()
	first, err := jobs.EnqueueSQL(ctx, db, keyed("k"))
	finish(t, err)
	second, err := jobs.EnqueueSQL(ctx, db, keyed("k"))
	finish(t, err)
	if first.Existing || second != (jobs.Enqueued{ID: first.ID, Existing: true}) {
		t.Errorf("first %+v, second %+v, want the second told the first", first, second)
	}
}

func TestStatementsWorkInEveryQueryModeOfPgx(t *testing.T) {
	url := testdb.New(t)
	for mode := pgx.QueryExecModeCacheStatement; mode <= pgx.QueryExecModeSimpleProtocol; mode++ {
		config, err := pgx.ParseConfig(url)
		finish(t, err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(ctx, config)
		finish(t, err)
		defer conn.Close(ctx)
		job := jobs.New{Queue: "mail", Name: "Send", Args: `{"it's": "\\ $1"}`}
		if _, err := jobs.Enqueue(ctx, conn, job); err != nil {
			t.Errorf("enqueue in mode %s: %v", mode, err)
		}
		if _, err := jobs.Schema("").Requeue(ctx, conn, 1, 99); err != nil {
			t.Errorf("requeue in mode %s: %v", mode, err)
		}
	}
	pool, err := pgxpool.New(ctx, url)
	finish(t, err)
	defer pool.Close()
	enqueue(t, pool, jobs.New{Queue: "mail", Name: "Send"})
}

// In a transaction of database/sql. Any driver for Postgres will do.
func ExampleEnqueueSQL() {
	databaseURL, done := exampleDatabase()
	defer done()

	ctx := context.Background()
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		log.Panic(err)
	}
	defer db.Close()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Panic(err)
	}
	defer tx.Rollback()
	job, err := jobs.EnqueueSQL(ctx, tx, jobs.New{
		Queue: "slack",
		Name:  "PostMessage",
		Args:  `{"channel": "general", "text": "hello"}`,
		In:    5 * time.Minute,
	})
	if err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}
	fmt.Println(job.ID)
	// Output: 1
}
