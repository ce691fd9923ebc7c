// Package localpg runs a private Postgres: for `queuekeeper dev`, for tests and for measurements. It takes the
// newest binaries of the machine, listens on a socket that only its user and root can reach, and is gone when
// the process that started it is gone, however that ended.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// User is the superuser of every cluster, and the user in its URLs.
const User = "queuekeeper"

// Options of Start.
type Options struct {
	// Dir is the folder of the cluster, made if it is missing. The data in it is kept: the next Start finds it.
	// Defaults to a new temporary folder that is removed at the end.
	Dir string
	// Settings are lines of postgresql.conf, such as {"fsync": "off"}. Defaults to those of Postgres.
	Settings map[string]string
}

// Cluster is a running Postgres of our own. Keep it reachable as long as it is used: it ends when it is
// collected, as it does when the process ends.
type Cluster struct {
	binaries binaries
	folder   *folder
	guard    *guard

	mu      sync.Mutex // orders to the guard are given one at a time
	stopped bool
}

// Start starts a cluster and returns when it accepts connections. Its errors say what to do: ErrNotInstalled
// where there is no Postgres, others where Dir is in use, is not ours or is of a major version that is not
// installed; if Postgres does not come up the error ends with the last lines of its log.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c, err := start(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start a private Postgres: %w", err)
	}
	return c, nil
}

func start(ctx context.Context, options Options) (*Cluster, error) {
	all, err := installed(candidates())
	if err != nil {
		return nil, err
	}
	who, err := serverOwner()
	if err != nil {
		return nil, err
	}
	f, err := openFolder(ctx, options.Dir, who)
	if err != nil {
		return nil, err
	}
	c := &Cluster{folder: f}
	if err := c.launch(ctx, all, who, options.Settings); err != nil {
		return nil, errors.Join(c.withLog(err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) launch(ctx context.Context, all []binaries, who *owner, settings map[string]string) error {
	var err error
	if c.binaries, err = choose(all, c.folder.file("data")); err != nil {
		return err
	}
	if err := c.folder.write("log", "", who); err != nil {
		return err
	}
	mode, after, initialize := "fast", "keep", "initialize"
	if c.folder.temp {
		mode, after, initialize = "immediate", "remove", "initialize-no-sync"
	}
	if c.guard, err = startGuard(who, c.folder.lock, c.binaries.dir, c.folder.path, mode, after); err != nil {
		return err
	}
	if _, err := os.Stat(c.folder.file("data")); errors.Is(err, os.ErrNotExist) {
		if err := c.guard.do(ctx, initialize); err != nil {
			return err
		}
	}
	if err := c.folder.write("data/postgresql.conf", c.configuration(settings), who); err != nil {
		return err
	}
	// Left over from a kill or a power cut, and its process id may be another's by now. We hold the lock that
	// Postgres holds too, so it is not running; if somebody started it by hand it refuses a second all the same.
	if err := os.Remove(c.folder.file("data/postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return c.guard.do(ctx, "start")
}

// configuration is the whole postgresql.conf: all that is not here is at the default of Postgres.
func (c *Cluster) configuration(settings map[string]string) string {
	lines := map[string]string{
		"listen_addresses":        "",
		"port":                    "5432", // part of the socket's name: no other process can have it
		"unix_socket_directories": `"` + strings.ReplaceAll(c.folder.path, `"`, `""`) + `"`,
		"lc_messages":             "C",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	maps.Copy(lines, settings)
	var text strings.Builder
	text.WriteString("# Written anew by queuekeeper at each start.\n")
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(lines[name]))
	}
	return text.String()
}

// URL returns the address of a database of the cluster, which must be made first unless it is "postgres".
// It stays the same for a folder. In a shell it needs quotes.
func (c *Cluster) URL(database string) string {
	// psql takes + for itself, not for a space; a slash may stay as it is.
	host := strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(c.folder.path))
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(User),
		Path:     "/" + database,
		RawQuery: "host=" + host + "&port=5432", // the port, because PGPORT may say another
	}
	return u.String()
}

// Bin returns the path of a program that came with this Postgres, such as psql or pgbench.
func (c *Cluster) Bin(name string) string { return filepath.Join(c.binaries.dir, name) }

// Log returns the path of the server's log.
func (c *Cluster) Log() string { return c.folder.file("log") }

// Halt stops Postgres at once, as a crash would: no checkpoint, connections cut. The data stays for Resume. When
// ctx ends before Halt or Resume does, only Stop may follow.
func (c *Cluster) Halt(ctx context.Context) error { return c.order(ctx, "halt") }

// Resume starts Postgres again after Halt, with the same data and the same URLs, and returns when it accepts
// connections.
func (c *Cluster) Resume(ctx context.Context) error { return c.order(ctx, "start") }

func (c *Cluster) order(ctx context.Context, order string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.guard.do(ctx, order); err != nil {
		return c.withLog(err)
	}
	return nil
}

// Stop ends Postgres, and removes the folder if it is temporary. When it returns no process is left. Further
// calls do nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	var err error
	if c.guard != nil {
		err = c.guard.end()
	}
	return errors.Join(err, c.folder.close())
}

// withLog adds the last lines of the log to an error: there Postgres says why.
func (c *Cluster) withLog(err error) error {
	const most = 2000
	text, readErr := os.ReadFile(c.Log())
	if readErr != nil || len(text) == 0 {
		return err
	}
	return fmt.Errorf("%w; the end of %s:\n%s", err, c.Log(), text[max(0, len(text)-most):])
}
