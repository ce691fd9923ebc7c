package jobs

import (
	"context"
	"database/sql"
)

// SQLDB is what *sql.DB, *sql.Tx and *sql.Conn of database/sql share.
type SQLDB interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// EnqueueSQL is Enqueue for database/sql.
func EnqueueSQL(ctx context.Context, db SQLDB, job New) (Enqueued, error) {
	return Schema("").EnqueueSQL(ctx, db, job)
}

// EnqueueManySQL is EnqueueMany for database/sql.
func EnqueueManySQL(ctx context.Context, db SQLDB, jobs []New) ([]Enqueued, error) {
	return Schema("").EnqueueManySQL(ctx, db, jobs)
}

// EnqueueSQL is Schema.Enqueue for database/sql.
func (s Schema) EnqueueSQL(ctx context.Context, db SQLDB, job New) (Enqueued, error) {
	return s.enqueueOne(ctx, querySQL(db), job)
}

// EnqueueManySQL is Schema.EnqueueMany for database/sql.
func (s Schema) EnqueueManySQL(ctx context.Context, db SQLDB, jobs []New) ([]Enqueued, error) {
	return s.enqueue(ctx, querySQL(db), jobs, manyLabel)
}

// query sends one statement over either library.
type query func(ctx context.Context, sql string, args ...any) (rows, error)

// rows is what the rows of both libraries share.
type rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
	Close()
}

func queryPgx(db DB) query {
	return func(ctx context.Context, sql string, args ...any) (rows, error) {
		return db.Query(ctx, sql, args...)
	}
}

func querySQL(db SQLDB) query {
	return func(ctx context.Context, sql string, args ...any) (rows, error) {
		got, err := db.QueryContext(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return sqlRows{got}, nil
	}
}

type sqlRows struct{ *sql.Rows }

func (r sqlRows) Close() { _ = r.Rows.Close() } // an error of the statement is in Err
