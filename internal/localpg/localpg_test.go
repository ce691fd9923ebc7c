package localpg_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/localpg"
)

var quick = map[string]string{"fsync": "off"}

func start(t *testing.T, dir string) *localpg.Cluster {
	t.Helper()
	c, err := localpg.Start(t.Context(), localpg.Options{Dir: dir, Settings: quick})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
	return c
}

// keptDir is a folder that the user Postgres runs as can reach: t.TempDir is closed to others. Its name
// needs quoting everywhere: in the shell, in postgresql.conf and in URLs.
func keptDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "queuekeeper-kept-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "it's a+b & c")
}

// query runs statements on a new connection and returns what the last one says.
func query(t *testing.T, url string, statements ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var text *string
	for _, statement := range statements {
		rows, err := conn.Query(ctx, statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if _, err := pgx.ForEachRow(rows, []any{&text}, func() error { return nil }); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if text == nil {
		return ""
	}
	return *text
}

// folderOf finds the folder of a cluster where a user would: in its URL.
func folderOf(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.Host
}

// postmaster is the process id of the server in a folder.
func postmaster(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	return pid
}

// gone is nil when no process has that id. A zombie is gone: it waits for an init that may not reap.
func gone(pid string) error {
	state, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output() // fails where there is none
	if s := strings.TrimSpace(string(state)); s != "" && !strings.HasPrefix(s, "Z") {
		return fmt.Errorf("process %s: got state %s, want it gone", pid, s)
	}
	return nil
}

func missing(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: got error %v, want that it does not exist", path, err)
	}
	return nil
}

func TestStopLeavesNoProcessAndNoFolder(t *testing.T) {
	c := start(t, "")
	folder := folderOf(t, c.URL("postgres"))
	pid := postmaster(t, folder)
	if got := query(t, c.URL("postgres"), "show server_encoding"); got != "UTF8" {
		t.Errorf("server_encoding: got %s, want UTF8", got)
	}
	if err := c.Stop(); err != nil {
		t.Fatalf("Stop: got %v, want nil", err)
	}
	if err := errors.Join(gone(pid), missing(folder)); err != nil {
		t.Error(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second Stop: got %v, want nil", err)
	}
}

func TestFolderLetsOnlyItsOwnerIn(t *testing.T) {
	c := start(t, "")
	info, err := os.Stat(folderOf(t, c.URL("postgres")))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode: got %o, want 700: whoever reaches the socket is superuser", got)
	}
	if got := query(t, c.URL("postgres"), "show listen_addresses"); got != "" {
		t.Errorf("listen_addresses: got %q, want none", got)
	}
}

func TestKeptFolderKeepsDataAndURL(t *testing.T) {
	dir := keptDir(t)
	first := start(t, dir)
	query(t, first.URL("postgres"), "create table kept (word text)", "insert into kept values ('still here')")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir)
	if got, want := second.URL("postgres"), first.URL("postgres"); got != want {
		t.Errorf("URL: got %s, want %s", got, want)
	}
	if got := query(t, second.URL("postgres"), "select word from kept"); got != "still here" {
		t.Errorf("row: got %q, want %q", got, "still here")
	}
}

func TestURLIsForPsqlToo(t *testing.T) {
	t.Setenv("PGPORT", "1")
	c := start(t, keptDir(t))
	out, err := exec.Command(c.Bin("psql"), "-Atc", "select 'hello'", c.URL("postgres")).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "hello" {
		t.Errorf("psql: got %q (error %v), want hello", got, err)
	}
}

func TestHaltedClusterResumesWithItsData(t *testing.T) {
	c := start(t, "")
	query(t, c.URL("postgres"), "create table kept (word text)", "insert into kept values ('still here')")
	if err := c.Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if conn, err := pgx.Connect(t.Context(), c.URL("postgres")); err == nil {
		conn.Close(t.Context())
		t.Error("connect while halted: got a connection, want an error")
	}
	if err := c.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, c.URL("postgres"), "select word from kept"); got != "still here" {
		t.Errorf("row: got %q, want %q", got, "still here")
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	used := keptDir(t)
	start(t, used)

	other := keptDir(t)
	write(t, filepath.Join(other, "letter.txt"), "dear")

	old := keptDir(t)
	write(t, filepath.Join(old, "owner"), "")
	write(t, filepath.Join(old, "data", "PG_VERSION"), "9\n")

	for _, c := range []struct {
		name    string
		options localpg.Options
		want    string
	}{
		{"in use", localpg.Options{Dir: used}, fmt.Sprintf("process %d is using it: stop that one", os.Getpid())},
		{"not ours", localpg.Options{Dir: other}, "holds other things; choose one that is empty"},
		{"other major", localpg.Options{Dir: old}, "is of Postgres 9, and only"},
		{"long path", localpg.Options{Dir: "/tmp/" + strings.Repeat("x", 100)}, "choose a shorter one"},
		{"bad setting", localpg.Options{Settings: map[string]string{"fsync": "perhaps"}}, `parameter "fsync" requires a Boolean`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster, err := localpg.Start(t.Context(), c.options)
			if err == nil {
				cluster.Stop()
				t.Fatalf("Start: got no error, want one with %q", c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("Start: got %q, want it to contain %q", err, c.want)
			}
		})
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder that is not ours: got mode %v (error %v), want it untouched at 755", info.Mode(), err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGuardEndsATemporaryClusterWhenItsOwnerIsKilled(t *testing.T) {
	o := startOwner(t, "")
	folder := folderOf(t, o.url)
	pid := postmaster(t, folder)
	o.kill(t)
	eventually.OK(t, 30*time.Second, func() error { return errors.Join(gone(pid), missing(folder)) })
}

func TestKeptFolderOfAKilledOwnerCanBeUsedAtOnce(t *testing.T) {
	dir := keptDir(t)
	o := startOwner(t, dir)
	query(t, o.url, "create table kept (word text)", "insert into kept values ('still here')")
	o.kill(t)
	c := start(t, dir)
	if got := query(t, c.URL("postgres"), "select word from kept"); got != "still here" {
		t.Errorf("row: got %q, want %q", got, "still here")
	}
}

func TestOrdinaryUserCanStartACluster(t *testing.T) {
	o := startOrdinaryOwner(t)
	if got := query(t, o.url, "select current_user::text"); got != localpg.User {
		t.Errorf("user: got %s, want %s", got, localpg.User)
	}
	pid := postmaster(t, folderOf(t, o.url))
	o.kill(t)
	eventually.OK(t, 30*time.Second, func() error { return gone(pid) })
}
