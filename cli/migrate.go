package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"queuekeeper/migrations"
)

func migrateCommand(p *program) *cobra.Command {
	var status, noNotify bool
	cmd := p.printsData(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables in the database up to this program's version",
		Long: "Bring the tables in the database up to this program's version. Needs a direct connection, not PgBouncer's.\n" +
			"Several at once are safe. With --status nothing is changed, and the exit status is 1 if there is something to do.",
		Example: "  queuekeeper migrate\n  queuekeeper migrate --status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if status && noNotify {
				return usage("--status changes nothing: leave out --no-notify")
			}
			return p.migrate(cmd.Context(), status, migrations.Options{NoNotify: noNotify})
		},
	})
	cmd.Flags().BoolVar(&status, "status", false, "only show the version")
	cmd.Flags().BoolVar(&noNotify, "no-notify", false, "leave out the trigger that wakes workers: they poll, and inserts commit faster")
	return cmd
}

func (p *program) migrate(ctx context.Context, status bool, options migrations.Options) error {
	db, err := p.connectAnyway(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if !status {
		if err := migrations.Up(ctx, db.Conn, string(db.schema), options); err != nil {
			return err
		}
	}
	state, err := migrations.Check(ctx, db.Conn, string(db.schema))
	if err != nil && !errors.Is(err, migrations.ErrOlder) {
		return err
	}
	return errors.Join(err, p.printState(state))
}

func (p *program) printState(s migrations.State) error {
	if p.json {
		return printJSON(p.stdout, struct {
			Schema  string `json:"schema"`
			Version int    `json:"version"`
			Wanted  int    `json:"wanted"`
			Notify  bool   `json:"notify"`
		}{s.Schema, s.Version, s.Wanted, s.Notify})
	}
	_, err := fmt.Fprintf(p.stdout, "schema %s: version %d of %d, notifications %s\n",
		shown(s.Schema), s.Version, s.Wanted, onOff(s.Notify))
	return err
}
