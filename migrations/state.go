package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// What Check and Up can find wrong with a database. The errors they return wrap these and say what to do.
var (
	ErrOlder      = errors.New("the tables are older than this program")
	ErrNewerMajor = errors.New("the tables are of a newer major version than this program")
	ErrForeign    = errors.New("tables of somebody else are in the way")
)

// versionTable holds the number of the last migration that was applied.
const versionTable = "queuekeeper_version"

// lanesVersion is the one that brought the table lanes.
const lanesVersion = 3

// State is what a schema holds.
type State struct {
	Schema  string // the one looked at; never ""
	Version int    // of the tables: the number of the last migration; 0 if there are none
	Wanted  int    // the version this program was made for
	Major   int    // of the tables; 0 if there are none
	Notify  bool   // the trigger that tells idle workers of new jobs is there

	foreign string // the name of a table in the way
}

// Check tells what is in a schema ("" means current_schema()) and whether this program can work on it: the
// error is nil, or wraps ErrOlder, ErrNewerMajor or ErrForeign, with State filled in, or is one of Postgres.
// A later version of the same major is fine. Check only reads.
func Check(ctx context.Context, conn *pgx.Conn, schema string) (State, error) {
	schema, err := resolve(ctx, conn, schema)
	if err != nil {
		return State{}, err
	}
	state, err := read(ctx, conn, schema)
	if err != nil {
		return State{}, err
	}
	if err := state.refusal(); err != nil {
		return state, err
	}
	if state.Version < state.Wanted {
		return state, state.older()
	}
	return state, nil
}

// resolve names the schema. Postgres cuts longer names off, and then we would look for one that never is.
func resolve(ctx context.Context, conn *pgx.Conn, schema string) (string, error) {
	if len(schema) > 63 || strings.ContainsRune(schema, 0) {
		return "", fmt.Errorf("schema %q: must have at most 63 bytes, none of them zero", schema)
	}
	if schema != "" {
		return schema, nil
	}
	var current *string
	if err := conn.QueryRow(ctx, `select current_schema()::text`).Scan(&current); err != nil {
		return "", fmt.Errorf("find the schema: %w", err)
	}
	if current == nil {
		return "", errors.New("find the schema: search_path names none that exists; name one with `schema` in queues.toml")
	}
	return *current, nil
}

// relations are the names we claim in a schema, with what tells that they are ours. Whatever has such a name,
// a view or an index too, is in our way.
const relations = `
select c.relname::text,
	coalesce(substring(obj_description(c.oid, 'pg_class') from '^queuekeeper (\d{1,9})$')::int, 0),
	exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgname = 'notify_new_jobs')
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1
	and c.relname in ('jobs', 'queues', 'lanes', 'queuekeeper_version')
order by c.relname`

func read(ctx context.Context, conn *pgx.Conn, schema string) (State, error) {
	state := State{Schema: schema, Wanted: len(names())}
	rows, err := conn.Query(ctx, relations, schema)
	if err != nil {
		return State{}, fmt.Errorf("read schema %q: %w", schema, err)
	}
	var name string
	var major int
	var notify, versioned, lanes bool
	_, err = pgx.ForEachRow(rows, []any{&name, &major, &notify}, func() error {
		switch name {
		case versionTable:
			versioned = true
		case "jobs":
			state.Major, state.Notify = major, notify
			state.foreign = name
		default:
			state.foreign = name
			lanes = lanes || name == "lanes"
		}
		return nil
	})
	if err != nil {
		return State{}, fmt.Errorf("read schema %q: %w", schema, err)
	}
	if versioned {
		err := conn.QueryRow(ctx, `select version from `+quote(schema, versionTable)).Scan(&state.Version)
		if err != nil {
			return State{}, fmt.Errorf("read schema %q: version: %w", schema, err)
		}
	}
	if state.Version > 0 {
		state.foreign = "" // tables and version are written in one transaction
	}
	if lanes && state.Version > 0 && state.Version < lanesVersion {
		state.foreign = "lanes" // ours is not made yet
	}
	return state, nil
}

// refusal is why this program must not touch what is there, or nil.
func (s State) refusal() error {
	switch {
	case s.foreign != "" && s.Version > 0:
		return fmt.Errorf("schema %q: %w: %s is not queuekeeper's, and the next version has one of that name; rename it",
			s.Schema, ErrForeign, s.foreign)
	case s.foreign != "" && s.Major > 0:
		return fmt.Errorf("schema %q: %w: they are queuekeeper's, but table %s is missing; restore it too",
			s.Schema, ErrForeign, versionTable)
	case s.foreign != "":
		return fmt.Errorf("schema %q: %w: %s is not queuekeeper's; name another schema, as in schema = \"queuekeeper\"",
			s.Schema, ErrForeign, s.foreign)
	case s.Major > Major:
		return fmt.Errorf("schema %q: %w: theirs is %d, ours is %d; use the queuekeeper that migrated it",
			s.Schema, ErrNewerMajor, s.Major, Major)
	case s.Version > 0 && s.Major == 0:
		return fmt.Errorf("schema %q: %s says %d, but table jobs is missing or has lost its comment 'queuekeeper %d'; "+
			"restore it, or drop %[2]s to begin anew", s.Schema, versionTable, s.Version, Major)
	}
	return nil
}

func (s State) older() error {
	if s.Version == 0 {
		return fmt.Errorf("schema %q: %w: there are none; run `queuekeeper migrate`", s.Schema, ErrOlder)
	}
	return fmt.Errorf("schema %q: %w: version %d of %d; run `queuekeeper migrate`", s.Schema, ErrOlder, s.Version, s.Wanted)
}
