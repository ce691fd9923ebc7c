package migrations

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

const createTrigger = `
create or replace trigger notify_new_jobs after insert on {jobs}
	referencing new table as new_jobs
	for each statement execute function {schema}.notify_new_jobs()`

const dropTrigger = `drop trigger if exists notify_new_jobs on {jobs}`

// setNotify looks first: both statements lock jobs against every writer, and need its owner.
func setNotify(ctx context.Context, conn *pgx.Conn, schema string, on bool) error {
	state, err := read(ctx, conn, schema)
	if err != nil || state.Notify == on {
		return err
	}
	statement := dropTrigger
	if on {
		statement = createTrigger
	}
	names := strings.NewReplacer("{jobs}", quote(schema, "jobs"), "{schema}", quote(schema))
	_, err = conn.Exec(ctx, names.Replace(statement))
	return err
}
