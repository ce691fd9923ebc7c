package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/config"
	"queuekeeper/jobs"
	"queuekeeper/migrations"
)

// connectTimeout holds unless the connection string has one.
const connectTimeout = 10 * time.Second

// database is a connection, the schema in it that holds the tables, and the workers of the file that named it.
type database struct {
	*pgx.Conn
	schema  jobs.Schema
	workers []config.Worker // none: there is no file
}

// connect returns a connection to a database whose tables this program can work on.
func (p *program) connect(ctx context.Context) (*database, error) {
	db, err := p.connectAnyway(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := migrations.Check(ctx, db.Conn, string(db.schema)); err != nil {
		db.Close(ctx)
		return nil, err
	}
	return db, nil
}

// connectAnyway does not look at the tables.
func (p *program) connectAnyway(ctx context.Context) (*database, error) {
	file, err := p.loadIfAny()
	if err != nil {
		return nil, err
	}
	return open(ctx, file)
}

// unserved says why no worker of the file does a job, or "". Without a file nobody knows.
func (db *database) unserved(queue, name string) string {
	if len(db.workers) == 0 {
		return ""
	}
	w, ok := db.worker(queue)
	if !ok {
		return fmt.Sprintf("queue %s has no worker in the file", queue)
	}
	if len(w.Jobs) > 0 && !slices.Contains(w.Jobs, name) {
		return fmt.Sprintf("the worker of queue %s accepts %s only", queue, strings.Join(w.Jobs, ", "))
	}
	return ""
}

// worker is the one that serves the queue in the file.
func (db *database) worker(queue string) (config.Worker, bool) {
	i := slices.IndexFunc(db.workers, func(w config.Worker) bool { return w.Queue == queue })
	if i < 0 {
		return config.Worker{}, false
	}
	return db.workers[i], true
}

// open connects to the database of a file.
func open(ctx context.Context, file config.File) (*database, error) {
	conn, err := dial(ctx, file.DatabaseURL)
	if err != nil {
		return nil, err
	}
	return &database{conn, jobs.Schema(file.Schema), file.Workers}, nil
}

// loadIfAny reads the file. If none is named and none is here, all there is to know is $DATABASE_URL.
func (p *program) loadIfAny() (config.File, error) {
	if p.config == nil {
		if _, err := os.Stat(defaultConfig); errors.Is(err, fs.ErrNotExist) {
			address, err := p.addressWithoutFile()
			return config.File{DatabaseURL: address}, err
		}
	}
	return p.load()
}

func (p *program) load() (config.File, error) { return config.Load(p.configPath(), p.getenv) }

func (p *program) configPath() string {
	if p.config != nil {
		return *p.config
	}
	return defaultConfig
}

func (p *program) addressWithoutFile() (string, error) {
	address, _ := p.getenv("DATABASE_URL")
	if address == "" {
		return "", fmt.Errorf("%w: there is no %s here and DATABASE_URL is not set; set it, or name a file with -c",
			errConfig, defaultConfig)
	}
	if err := config.CheckDatabaseURL(address); err != nil {
		return "", fmt.Errorf("%w: DATABASE_URL: %w", errConfig, err)
	}
	return address, nil
}

func dial(ctx context.Context, address string) (*pgx.Conn, error) {
	settings, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("%w: database_url: cannot be read", errConfig) // its text may hold the password
	}
	if settings.RuntimeParams["application_name"] == "" {
		settings.RuntimeParams["application_name"] = "queuekeeper"
	}
	if settings.ConnectTimeout == 0 {
		settings.ConnectTimeout = connectTimeout
	}
	conn, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		return nil, connectError{err} // pgx leaves the password out
	}
	return conn, nil
}

// connectError says on one line what pgx says on one for each address it tried.
type connectError struct{ error }

func (e connectError) Error() string {
	var tried []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(tried, line) {
			tried = append(tried, line)
		}
	}
	return "connect to the database: " + strings.Join(tried, " ")
}

func (e connectError) Unwrap() error { return e.error }
