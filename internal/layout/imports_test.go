package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "queuekeeper/"

// mayImport is which packages of ours each package may import, tests aside. A package main may import all. What no
// line names but a main imports (cli, internal/windows) or only tests do (internal/testdb, internal/eventually) is
// kept out of the program by that.
var mayImport = map[string][]string{
	// Each of these can be read, tested and used without the rest.
	"config":           {},
	"deploy":           {},
	"jobs":             {},
	"migrations":       {},
	"ratelimit":        {},
	"internal/layout":  {},
	"internal/localpg": {},
	"internal/logs":    {},
	"internal/procs":   {},
	"internal/visible": {},

	"handler":         {"config", "internal/procs", "internal/visible", "jobs"},
	"handler/refusal": {"jobs"},
	"internal/wire":   {"config", "jobs"},

	// Two processes. What they say to each other is in wire; neither knows how the other works.
	"child":      {"config", "handler", "internal/logs", "internal/procs", "internal/wire", "jobs", "migrations", "ratelimit"},
	"supervisor": {"config", "internal/procs", "internal/wire", "jobs"},

	// What the supervisor's process says to the database. The supervisor itself does not know it.
	"internal/steward": {"config", "handler", "internal/procs", "internal/wire", "jobs", "migrations"},

	// It puts all of them together.
	"cli": {
		"child", "config", "handler", "internal/localpg", "internal/logs", "internal/steward", "internal/visible", "internal/wire",
		"jobs", "migrations", "supervisor",
	},

	// For tests and tools.
	"internal/eventually": {},
	"internal/testdb":     {"internal/localpg", "migrations"},
	"internal/tryout":     {},
	"internal/windows":    {},
}

func TestImportsGoOneWay(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := mayImport[name]
		if p.Name == "main" {
			continue
		}
		if !known {
			t.Errorf("package %s: got no line in mayImport, want one that says what it may import", name)
		}
		for _, imported := range p.Imports {
			ours, is := strings.CutPrefix(imported, module)
			if is && !slices.Contains(allowed, ours) {
				t.Errorf("package %s: got an import of %s, want only %q", name, ours, allowed)
			}
		}
	}
}

func TestRulesNameOnlyPackagesThatExist(t *testing.T) {
	var exist []string
	for _, p := range packages(t) {
		exist = append(exist, strings.TrimPrefix(p.ImportPath, module))
	}
	for name, allowed := range mayImport {
		for _, n := range append(allowed, name) {
			if !slices.Contains(exist, n) {
				t.Errorf("mayImport of %s: got %s, want the name of a package", name, n)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("package comment of %s: got %q, want one that starts with %q", p.ImportPath, p.Doc, want)
		}
	}
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath string
	Name       string
	Doc        string   // the first sentence of the package comment
	Imports    []string // without those of tests
}

// packages lists every package of the module.
func packages(t *testing.T) (all []listed) {
	t.Helper()
	out := output(t, exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports", module+"..."))
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("read the list of packages: %v", err)
		}
		all = append(all, p)
	}
}

// output returns what a command prints, and fails the test if the command does.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%s: %v\n%s", cmd, err, exit.Stderr)
	}
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}
