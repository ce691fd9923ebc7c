package migrations

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"
)

// UpTo makes the tables of an earlier version in the schema public, as the program of that time did.
func UpTo(ctx context.Context, conn *pgx.Conn, version int32) error {
	migrator, err := migrate.NewMigrator(ctx, conn, quote("public", versionTable))
	if err != nil {
		return err
	}
	migrator.Data = map[string]any{"schema": quote("public"), "major": "1"}
	if err := migrator.LoadMigrations(files); err != nil {
		return err
	}
	return migrator.MigrateTo(ctx, version)
}
