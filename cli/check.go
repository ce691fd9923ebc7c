package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"queuekeeper/config"
	"queuekeeper/handler"
	"queuekeeper/migrations"
)

func checkCommand(p *program) *cobra.Command {
	return p.printsData(&cobra.Command{
		Use:   "check",
		Short: "Check the file and the database, and print the effective settings",
		Long: "Check the file and the database, print every fault and warning on stderr and the effective settings on stdout.\n" +
			"Warnings are also about what this machine cannot give: users, memory limits, open files; and about limits that cannot\n" +
			"be reached: so many jobs at a time, each as long as those of the last hour, start fewer; and settings that have no\n" +
			"effect because of others.\n" +
			"Nothing is started and nothing changed. The exit status is 78 if the file has a fault, 1 if only the database has one.",
		Example: "  queuekeeper check -c /etc/queues.toml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.check(cmd.Context())
		},
	})
}

func (p *program) check(ctx context.Context) error {
	file, err := p.load()
	if err != nil {
		return err
	}
	facts, dbErr := p.checkDatabase(ctx, file)
	if err := p.printSettings(file, facts); err != nil {
		return err
	}
	p.warnLimits(file)
	p.warnMachine(file)
	faults := p.checkHandlers(file)
	if len(faults) == 0 {
		return dbErr
	}
	p.tell(dbErr)
	return faults
}

// checkHandlers tells which workers could not do a single job, or not all.
func (p *program) checkHandlers(file config.File) config.Faults {
	faults := p.startFaults(file)
	for _, w := range file.Workers {
		faults = append(faults, w.CheckCommands()...)
	}
	return faults
}

// startFaults tells what of a file cannot be run here: names in an env that are not set, and workers that have nothing
// at all to do their jobs. Unlike a command that is not there, that
// cannot be right later.
func (p *program) startFaults(file config.File) config.Faults {
	faults := file.CheckEnv(p.getenv)
	for _, w := range file.Workers {
		if _, err := handler.New(w, p.handlers, hclog.NewNullLogger()); err != nil {
			faults = append(faults, config.Fault{Path: w.Path, Line: w.Line, Key: "worker." + w.Queue, Text: err.Error()})
		}
	}
	return faults
}

// databaseFacts are what check shows of the database.
type databaseFacts struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Name    string `json:"name"`
	User    string `json:"user"`
	TLS     bool   `json:"tls"`
	Schema  string `json:"schema"`
	Version int    `json:"version"` // of the tables
	Notify  bool   `json:"notify"`
}

func (p *program) checkDatabase(ctx context.Context, file config.File) (*databaseFacts, error) {
	db, err := open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer db.Close(ctx)
	state, err := migrations.Check(ctx, db.Conn, file.Schema)
	settings := db.Config()
	_, encrypted := db.PgConn().Conn().(*tls.Conn)
	facts := &databaseFacts{
		Host: settings.Host, Port: settings.Port, Name: settings.Database, User: settings.User, TLS: encrypted,
		Schema: state.Schema, Version: state.Version, Notify: state.Notify,
	}
	if err != nil {
		return facts, err
	}
	return facts, p.warn(ctx, db, file)
}

// unserved counts the waiting jobs of the queues that have some and no worker in the file.
func unserved(ctx context.Context, db *database) (map[string]int64, error) {
	pending, err := db.schema.PendingByQueue(ctx, db)
	for _, w := range db.workers {
		delete(pending, w.Queue)
	}
	return pending, err
}

// warn tells what is not wrong, but will hardly be meant.
func (p *program) warn(ctx context.Context, db *database, file config.File) error {
	waiting, err := unserved(ctx, db)
	if err != nil {
		return err
	}
	for _, queue := range slices.Sorted(maps.Keys(waiting)) {
		p.lines("warning: ", fmt.Sprintf("queue %s has %d waiting jobs and no worker in %s", queue, waiting[queue], file.Path))
	}
	queues, err := db.schema.Status(ctx, db)
	if err != nil {
		return err
	}
	p.warnReach(file, queues)
	var most int
	if err := db.QueryRow(ctx, `select current_setting('max_connections')::int`).Scan(&most); err != nil {
		return fmt.Errorf("read max_connections: %w", err)
	}
	if len(file.Workers)+1 > most {
		p.lines("warning: ", fmt.Sprintf("%d workers need a connection each, and the supervisor one; the server's max_connections is %d",
			len(file.Workers), most))
	}
	return nil
}
