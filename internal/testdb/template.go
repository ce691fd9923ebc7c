package testdb

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"queuekeeper/migrations"
)

// The template is made once per test binary; who comes later takes the outcome.
var (
	templateOnce sync.Once
	templateErr  error
)

// template returns the name of the database that New copies. A server that outlives the test binary keeps one
// for each version of the migrations it has seen.
func template(t testing.TB) string {
	t.Helper()
	name := "queuekeeper_template_" + migrations.Hash()[:16]
	server, address := server(t), at(t, name)
	templateOnce.Do(func() { templateErr = makeTemplate(server, address, name) })
	if templateErr != nil {
		t.Fatalf("make the template database: %v", templateErr)
	}
	return name
}

// makeTemplate makes it under a lock: test binaries run at once. That it is a template is said last, so one
// that was cut off is made again.
func makeTemplate(server, address, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // and with it the lock
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtext($1))`, name); err != nil {
		return err
	}
	var complete bool
	err = conn.QueryRow(ctx,
		`select exists (select from pg_database where datname = $1 and datistemplate)`, name).Scan(&complete)
	if err != nil || complete {
		return err
	}
	for _, statement := range []string{"drop database if exists %s", "create database %s"} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(statement, quote(name))); err != nil {
			return err
		}
	}
	if err := up(ctx, address); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("alter database %s is_template true", quote(name)))
	return err
}

func up(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return migrations.Up(ctx, conn, "", migrations.Options{})
}
