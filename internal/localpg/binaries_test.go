package localpg

import (
	"errors"
	"strings"
	"testing"
)

func TestVersionIsReadFromWhatPostgresSays(t *testing.T) {
	for text, want := range map[string]struct {
		major, minor int
		ok           bool
	}{
		"postgres (PostgreSQL) 15.12 (Debian 15.12-0+deb12u2)\n": {15, 12, true},
		"postgres (PostgreSQL) 18beta1\n":                        {18, 0, true},
		"postgres (PostgreSQL) 9.6.24\n":                         {9, 6, true},
		"psql: command not found\n":                              {0, 0, false},
	} {
		major, minor, ok := parseVersion(text)
		if major != want.major || minor != want.minor || ok != want.ok {
			t.Errorf("parseVersion(%q): got %d, %d, %v, want %v", text, major, minor, ok, want)
		}
	}
}

func TestNewestServerComesFirst(t *testing.T) {
	all, err := installed(candidates())
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.major < b.major || (a.major == b.major && a.minor < b.minor) {
			t.Errorf("order: got %d.%d before %d.%d, want the newest first", a.major, a.minor, b.major, b.minor)
		}
	}
}

func TestWithoutAServerTheErrorNamesTheCommand(t *testing.T) {
	_, err := installed([]string{t.TempDir()})
	if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "make deps") {
		t.Errorf("installed: got %v, want ErrNotInstalled with `make deps`", err)
	}
}
