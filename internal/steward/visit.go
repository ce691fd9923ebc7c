package steward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/config"
	"queuekeeper/jobs"
	"queuekeeper/migrations"
)

// visit is one connection to one database, and what was done there.
type visit struct {
	*Steward
	conn   *pgx.Conn
	schema jobs.Schema
	file   config.File // whose database it is

	stored   int       // the number of the picture that is stored; 0: none, or not all of it
	showAt   time.Time // when to store it again, changed or not
	calmTill time.Time // not even a changed one is stored before this
	left     string    // what was left when it was last swept for; see given.left
	looked   int       // files whose queues without a worker were looked for; see given.files
	lookAt   time.Time // when to look again
}

func (s *Steward) visit(ctx context.Context, file config.File) (*visit, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, schema, err := connect(ctx, file)
	if err != nil {
		return nil, err
	}
	// The children first, after an outage too: each brings back its own, and what has ended meanwhile.
	if earliest := time.Now().Add(s.times.Sweep / 12); s.sweepAt.Before(earliest) {
		s.sweepAt = earliest
	}
	return &visit{Steward: s, conn: conn, schema: schema, file: file}, nil
}

// connect connects to the database of a file and makes sure that this program can work on its tables.
func connect(ctx context.Context, file config.File) (*pgx.Conn, jobs.Schema, error) {
	settings, err := pgx.ParseConfig(file.DatabaseURL)
	if err != nil {
		return nil, "", errors.New("database_url: cannot be read") // its text may hold the password
	}
	conn, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		return nil, "", fmt.Errorf("connect to the database: %w", err) // pgx leaves the password out
	}
	state, err := prepare(ctx, conn, file.Schema)
	if err != nil {
		hangUp(conn)
		return nil, "", err
	}
	return conn, jobs.Schema(state.Schema), nil
}

func prepare(ctx context.Context, conn *pgx.Conn, schema string) (migrations.State, error) {
	if err := jobs.PrepareSession(ctx, conn, "queuekeeper steward", patience); err != nil {
		return migrations.State{}, err
	}
	return migrations.Check(ctx, conn, schema)
}

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = conn.Close(ctx) // a goodbye, if it still gets through
}

// Try finds out, within 5 s, whether the database of a file can be worked on: it answers and has our tables.
func (s *Steward) Try(ctx context.Context, file config.File) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, _, err := connect(ctx, file)
	if err != nil {
		return err
	}
	hangUp(conn)
	return nil
}

func (v *visit) leave() { hangUp(v.conn) }

// moved reports whether the file now names another database.
func (v *visit) moved() bool {
	now := v.now().file
	return now.DatabaseURL != v.file.DatabaseURL || now.Schema != v.file.Schema
}

// work does what is due. Each part ends with last; between two of them the end of ctx is enough.
func (v *visit) work(ctx, last context.Context) error {
	now := time.Now()
	if given := v.now(); due(v.lookAt, now) || v.looked != given.files {
		v.looked, v.lookAt = given.files, now.Add(v.times.Sweep)
		if err := v.look(last, given.file); err != nil {
			return err
		}
	}
	if due(v.showDue(), now) {
		if err := v.show(last); err != nil {
			return err
		}
	}
	if left := v.now().left; due(v.sweepAt, now) || v.left != left {
		v.sweepAt, v.left = now.Add(v.times.Sweep), left
		return v.sweep(ctx, last)
	}
	return nil
}

func due(t, now time.Time) bool { return !t.After(now) }

// wait waits for something to become due, for something new, and for the end.
func (v *visit) wait(ctx context.Context) {
	next := v.showDue()
	for _, t := range []time.Time{v.sweepAt, v.lookAt} {
		if t.Before(next) {
			next = t
		}
	}
	select {
	case <-ctx.Done():
	case <-v.changed:
	case <-time.After(time.Until(next)):
	}
}
