package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// machine says what the results were measured on.
func (r *rig) machine(ctx context.Context) (string, error) {
	db, err := pgx.Connect(ctx, r.postgres.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer db.Close(context.WithoutCancel(ctx))
	var postgres string
	if err := db.QueryRow(ctx, `select current_setting('server_version')`).Scan(&postgres); err != nil {
		return "", err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("read the kernel's name: %w", err)
	}
	return fmt.Sprintf("%s: %d cores, %s %s %s, Postgres %s with default durability, %s",
		time.Now().Format("2006-01-02 15:04"), runtime.NumCPU(), unix.ByteSliceToString(u.Sysname[:]),
		unix.ByteSliceToString(u.Release[:]), runtime.GOARCH, postgres, runtime.Version()), nil
}
