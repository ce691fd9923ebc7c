package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/eventually"
)

// Ctrl-C in the terminal reaches everything in its foreground group: dev alone, which then ends its children and
// its Postgres in order.
func TestInterruptOfATerminalEndsDev(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--sample", "3")
	d.screen.shows(t, "id=3 attempt=1 status=done")
	d.screen.types(t, "\x03")
	d.exits(0)
	d.left(t)
	if strings.Contains(d.screen.text(), "[ERROR]") {
		t.Errorf("screen: got an error, want none:\n%s", d.screen.text())
	}
}

// Nobody has to wait for a Postgres that is just being made.
func TestInterruptWhileDevStartsLeavesNothing(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	eventually.OK(t, patience, func() error {
		if commandLines(t, d.folder(t)) == nil {
			return errors.New("processes of Postgres: got none, want some")
		}
		return nil
	})
	d.screen.types(t, "\x03")
	d.exits(-1) // by the signal
	d.left(t)
}

// dev is a `queuekeeper dev` in a terminal.
type dev struct {
	*process
	screen *pty
}

func startDev(t *testing.T, args ...string) dev {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	t.Cleanup(s.clean)
	s.write("queues.toml", `
[[worker]]
queue = "github"
command = ["true"]
`)
	screen := terminal(t)
	cmd := s.command(append([]string{"dev"}, args...), "HOME="+devHome(t), dividedEnv+"=10")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen.far, screen.far, screen.far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	d := dev{s.start(cmd), screen}
	screen.shows(t, "\r\n")
	folder := d.folder(t)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return d
}

// left fails unless every process of dev ends, Postgres included.
func (d dev) left(t *testing.T) {
	t.Helper()
	d.s.gone("")
	folder := d.folder(t)
	eventually.OK(t, patience, func() error {
		if left := commandLines(t, folder); len(left) > 0 {
			return fmt.Errorf("processes of %s: got %v, want none", folder, left)
		}
		return nil
	})
}

// folder is where dev said its Postgres is.
func (d dev) folder(t *testing.T) string {
	t.Helper()
	screen := d.screen.text()
	_, rest, _ := strings.Cut(screen, "starting Postgres in ")
	path, _, _ := strings.Cut(rest, "\r\n")
	if !strings.HasPrefix(filepath.Base(path), "postgres-") {
		t.Fatalf("folder of Postgres: got %q, want .../postgres-HASH; the screen shows\n%s", path, screen)
	}
	return path
}

// devHome is where dev keeps its Postgres, if this is an ordinary user; for root that is elsewhere.
func devHome(t *testing.T) string {
	home, err := os.MkdirTemp("/tmp", "queuekeeper-home-") // short, for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	return home
}

// commandLines are those of the living processes that contain a text.
func commandLines(t *testing.T, with string) (lines []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		line, _ := os.ReadFile(path) // it may have ended
		line = bytes.ReplaceAll(line, []byte{0}, []byte{' '})
		if bytes.Contains(line, []byte(with)) {
			lines = append(lines, string(line))
		}
	}
	return lines
}
