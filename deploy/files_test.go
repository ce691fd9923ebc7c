package deploy_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"queuekeeper/config"
)

// stopTimeouts is where each file says how long a stop may take, and in what unit. "": another file says it for it.
var stopTimeouts = map[string]struct {
	pattern string
	unit    time.Duration
}{
	"queuekeeper.service": {`(?m)^TimeoutStopSec=(\d+)$`, time.Second},
	"runit/run":           {`sv -w (\d+) stop`, time.Second},
	"runit/finish":        {},
	"s6/run":              {`s6-svc -wD -T (\d+) -d`, time.Millisecond},
	"s6/finish":           {},
	"s6/timeout-kill":     {`^(\d+)\n$`, time.Millisecond},
	"supervisord.conf":    {`(?m)^stopwaitsecs=(\d+)$`, time.Second},
	"Procfile":            {`foreman start -t (\d+)`, time.Second},
	"Dockerfile":          {`docker stop -t (\d+)`, time.Second},
	"kubernetes.yaml":     {`(?m)^ +terminationGracePeriodSeconds: (\d+)$`, time.Second},
}

// margin is what a busy machine may take on top of shutdown_timeout.
const margin = 3 * time.Second

func TestEveryManagerWaitsLongerThanAStopTakes(t *testing.T) {
	file, err := config.Load(write(t, "[[worker]]\nqueue = \"a\"\ncommand = [\"true\"]\n"),
		func(string) (string, bool) { return "postgres://localhost/app", true })
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range stopTimeouts {
		if says.pattern == "" {
			continue
		}
		found := regexp.MustCompile(says.pattern).FindStringSubmatch(read(t, name))
		if found == nil {
			t.Errorf("%s: got no match of %s, want its stop timeout", name, says.pattern)
			continue
		}
		n, err := strconv.Atoi(found[1])
		if got := time.Duration(n) * says.unit; err != nil || got < file.ShutdownTimeout+margin {
			t.Errorf("%s: got a stop timeout of %v, want shutdown_timeout, %v, and %v more", name, got, file.ShutdownTimeout, margin)
		}
	}
}

func TestEveryFileIsHereAndInTheREADME(t *testing.T) {
	readme := read(t, "README.md")
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || path == "README.md" {
			return err
		}
		if _, known := stopTimeouts[path]; !known {
			t.Errorf("%s: got no line in stopTimeouts, want one", path)
		}
		if !strings.Contains(readme, "]("+path+")") {
			t.Errorf("README.md: got no link to %s, want one", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Type=notify-reload is new in systemd 253; with an older one the test does what the unit says to do.
func TestSystemdTakesTheUnit(t *testing.T) {
	needs(t, "systemd-analyze")
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.ReplaceAll(read(t, "queuekeeper.service"), "/usr/local/bin/queuekeeper", program)
	var version int
	if _, err := fmt.Sscanf(output(t, "systemd-analyze", "--version"), "systemd %d", &version); err != nil {
		t.Fatalf("systemd-analyze --version: %v", err)
	}
	if version < 253 {
		unit = before253(t, unit)
	}
	path := filepath.Join(t.TempDir(), "queuekeeper.service")
	if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--recursive-errors=no", path).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: got %v\n%s\nwant no complaint", err, out)
	}
}

// before253 changes the unit as its comment says.
func before253(t *testing.T, unit string) string {
	t.Helper()
	found := regexp.MustCompile(`# Before systemd 253: (\S+) and (.*)`).FindStringSubmatch(unit)
	if found == nil {
		t.Fatal("queuekeeper.service: got no word on systemd before 253, want one")
	}
	return strings.Replace(unit, "\nType=notify-reload\n", "\n"+found[1]+"\n"+found[2]+"\n", 1)
}

// kubectl leaves out what is no field of Kubernetes when it makes objects of a manifest, and keeps all when it does
// not look at what they are. So a wrong name shows as a difference. Neither asks a cluster.
func TestKubernetesKnowsEveryField(t *testing.T) {
	needs(t, "kubectl")
	deployment, _, _ := strings.Cut(read(t, "kubernetes.yaml"), "\n---\n")
	path := write(t, deployment)
	var known, written map[string]any
	for into, args := range map[*map[string]any][]string{
		&known:   {"kubectl", "set", "image", "--local", "-o", "json", "-f", path, "queuekeeper=other"},
		&written: {"kubectl", "annotate", "--local", "-o", "json", "-f", path, "a=b"},
	} {
		if err := json.Unmarshal([]byte(output(t, args...)), into); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	delete(written["metadata"].(map[string]any), "annotations")
	for _, field := range missing("", written, known) {
		t.Errorf("kubernetes.yaml: got %s, want a field that Kubernetes has", field)
	}
}

// missing lists what is in a and not in b.
func missing(path string, a, b any) (fields []string) {
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		for name, value := range a {
			if _, there := b[name]; !there {
				fields = append(fields, path+"."+name)
				continue
			}
			fields = append(fields, missing(path+"."+name, value, b[name])...)
		}
	case []any:
		b, _ := b.([]any)
		for i, value := range a {
			if i >= len(b) {
				return append(fields, fmt.Sprintf("%s[%d]", path, i))
			}
			fields = append(fields, missing(fmt.Sprintf("%s[%d]", path, i), value, b[i])...)
		}
	}
	return fields
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write makes a file of a text and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// output is what a command prints; it must exit with status 0.
func output(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, complaint.String())
	}
	return string(out)
}
