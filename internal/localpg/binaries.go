package localpg

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldest is the oldest major version of Postgres that queuekeeper works on.
const oldest = 14

// ErrNotInstalled is the error of Start on a machine without the server binaries of Postgres.
var ErrNotInstalled = errors.New("no Postgres server (14 or newer) found: type `make deps`, " +
	"or on Debian and Ubuntu `apt-get install postgresql`, on macOS `brew install postgresql@17`")

// binaries are the server programs of one installed Postgres.
type binaries struct {
	dir          string
	major, minor int
}

// installed lists the Postgres servers in some folders that are new enough, the newest first.
func installed(folders []string) ([]binaries, error) {
	var found []binaries
	for _, dir := range folders {
		b, ok := inspect(dir)
		if ok && b.major >= oldest && !slices.Contains(found, b) {
			found = append(found, b)
		}
	}
	if len(found) == 0 {
		return nil, ErrNotInstalled
	}
	slices.SortStableFunc(found, func(a, b binaries) int {
		return cmp.Or(cmp.Compare(b.major, a.major), cmp.Compare(b.minor, a.minor))
	})
	return found, nil
}

// candidates lists the folders where servers are: what the user's PATH says, then where packages put them.
// Debian and Homebrew keep server programs out of PATH.
func candidates() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		dirs = append(dirs, matches...)
	}
	return dirs
}

// inspect tells whether dir holds a whole server, and of which version. Links are followed, so that one
// server found in two ways is one.
func inspect(dir string) (binaries, bool) {
	postgres, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return binaries{}, false
	}
	dir = filepath.Dir(postgres)
	for _, name := range []string{"initdb", "pg_ctl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return binaries{}, false
		}
	}
	out, err := exec.Command(postgres, "--version").Output()
	if err != nil {
		return binaries{}, false
	}
	major, minor, ok := parseVersion(string(out))
	return binaries{dir, major, minor}, ok
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// parseVersion reads "postgres (PostgreSQL) 15.12 (Debian …)" and "postgres (PostgreSQL) 18beta1".
func parseVersion(text string) (major, minor int, ok bool) {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	major, err := strconv.Atoi(m[1])
	minor, _ = strconv.Atoi(m[2]) // none in a beta
	return major, minor, err == nil
}

// choose takes the newest binaries for a new data folder, and those of its own major version for an old one.
func choose(all []binaries, dataDir string) (binaries, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return all[0], nil
	}
	if err != nil {
		return binaries{}, err
	}
	want := strings.TrimSpace(string(text))
	for _, b := range all {
		if strconv.Itoa(b.major) == want {
			return b, nil
		}
	}
	return binaries{}, fmt.Errorf("the data in %s is of Postgres %s, and only %d is installed: "+
		"install Postgres %s, or delete the folder to begin anew", dataDir, want, all[0].major, want)
}
