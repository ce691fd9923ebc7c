// Package testdb gives each test a database of its own in a real Postgres: a private one that lives as long as
// the test binary, or the server that QUEUEKEEPER_TEST_DATABASE_URL names. DATABASE_URL is never looked at: it
// may be somebody's data.
package testdb

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/localpg"
)

// Variable names the variable with the URL of a server to use in place of a private one. Its user must be
// allowed to create databases.
const Variable = "QUEUEKEEPER_TEST_DATABASE_URL"

// settings trade durability for speed: the data of a test need not survive the machine.
var settings = map[string]string{"fsync": "off", "max_connections": "100"}

// patience is how long starting Postgres, making a database or dropping it may take on a busy machine.
const patience = time.Minute

// New returns the URL of a new database with the migrations applied. It is dropped when the test ends, with
// whoever is still connected.
func New(t testing.TB) string {
	t.Helper()
	return create(t, "template "+quote(template(t)))
}

// Empty returns the URL of a new database without tables. It is dropped when the test ends.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, "")
}

// Connect returns a connection that is closed when the test ends.
func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("connect to the test's database: %v", err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// Own returns a Postgres for this test alone, to be halted and resumed. It is stopped when the test ends. The
// migrations are applied in its database "postgres".
func Own(t testing.TB) *localpg.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cluster, err := localpg.Start(ctx, localpg.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := up(ctx, cluster.URL("postgres")); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return cluster
}

// create makes a database with a clause of CREATE DATABASE.
func create(t testing.TB, clause string) string {
	t.Helper()
	name := "queuekeeper_test_" + strings.ToLower(rand.Text())
	execute(t, "create database "+quote(name)+" "+clause)
	t.Cleanup(func() { execute(t, "drop database "+quote(name)+" with (force)") })
	return at(t, name)
}

// execute runs a statement on the server that only works outside a transaction.
func execute(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatalf("connect to the test server: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// private is the server of this test binary. It is held here so that it lives as long, and ended by its guard.
var private = sync.OnceValues(func() (*localpg.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return localpg.Start(ctx, localpg.Options{Settings: settings})
})

// server is the URL of the database from which others are made.
func server(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(Variable); given != "" {
		return given
	}
	cluster, err := private()
	if err != nil {
		t.Fatal(err)
	}
	return cluster.URL("postgres")
}

// at is the URL of another database of the server.
func at(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(server(t))
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		t.Fatalf("%s: must be a URL, as in postgres://user@host/database", Variable)
	}
	u.Path = "/" + database
	return u.String()
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
