// Package migrations brings the tables of queuekeeper into a database and tells whether a database has the
// ones this program works on. The .sql files are numbered and never change once released.
package migrations

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/tern/v2/migrate"
)

// Major is the major version of the tables. A program works on every later version of its own major.
const Major = 1

//go:embed *.sql
var files embed.FS

// lockKey is the advisory lock under which a database is migrated, "queuekee" in bytes.
const lockKey = 0x71756575656b6565

// Options of Up.
type Options struct {
	// NoNotify leaves out the trigger that tells idle workers of new jobs, and drops it if it is there: they
	// poll. Defaults to false, which also brings the trigger back.
	NoNotify bool
}

// Up brings the tables in a schema to this program's version; on a database that is there already, or later
// within the same major, only the trigger can change. A schema "" means current_schema(); one that is named
// and missing is made. Several may run at once: each waits for the one before.
//
// conn must be a direct connection (not PgBouncer's in transaction mode), outside a transaction; its session
// settings are reset. Errors are those of Check but ErrOlder, and those of Postgres.
func Up(ctx context.Context, conn *pgx.Conn, schema string, options Options) (err error) {
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, int64(lockKey)); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer func() {
		// Not with ctx: the lock must go even if ctx ended. A connection that broke has lost it anyway.
		_, unlockErr := conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, int64(lockKey))
		if err == nil && unlockErr != nil {
			err = fmt.Errorf("migrate: %w", unlockErr)
		}
	}()
	if schema, err = resolve(ctx, conn, schema); err != nil {
		return err
	}
	if err := createSchema(ctx, conn, schema); err != nil {
		return fmt.Errorf("create schema %q: %w", schema, err)
	}
	state, err := read(ctx, conn, schema)
	if err != nil {
		return err
	}
	if err := state.refusal(); err != nil {
		return err
	}
	if state.Version < state.Wanted {
		if err := migrateTables(ctx, conn, schema); err != nil {
			return fmt.Errorf("migrate schema %q: %w", schema, err)
		}
	}
	if err := setNotify(ctx, conn, schema, !options.NoNotify); err != nil {
		return fmt.Errorf("set notifications of schema %q: %w", schema, err)
	}
	return nil
}

// createSchema looks first: `create schema if not exists` wants the right to create even where it exists.
func createSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	var exists bool
	err := conn.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1)`, schema).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, `create schema `+quote(schema))
	return err
}

func migrateTables(ctx context.Context, conn *pgx.Conn, schema string) error {
	migrator, err := migrate.NewMigrator(ctx, conn, quote(schema, versionTable))
	if err != nil {
		return err
	}
	migrator.Data = map[string]any{"schema": quote(schema), "major": strconv.Itoa(Major)}
	if err := migrator.LoadMigrations(files); err != nil {
		return err
	}
	err = migrator.Migrate(ctx)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == lockNotAvailable {
		return fmt.Errorf("a table is locked, as by a backup or an open transaction; try again when that has ended: %w", err)
	}
	return err
}

const lockNotAvailable = "55P03"

// Hash names the content of all migrations: two programs with one hash make the same tables.
func Hash() string {
	sum := sha256.New()
	for _, name := range names() {
		content, err := files.ReadFile(name)
		if err != nil {
			panic(err) // embedded: cannot be missing
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
	}
	fmt.Fprint(sum, createTrigger)
	return hex.EncodeToString(sum.Sum(nil))
}

// names lists the migrations in their order.
func names() []string {
	list, err := fs.Glob(files, "*.sql")
	if err != nil {
		panic(err) // the only error is a bad pattern
	}
	return list
}

func quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }
