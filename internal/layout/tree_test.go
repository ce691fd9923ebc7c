package layout

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTreeBuildsForMacOS(t *testing.T) {
	cmd := exec.Command("go", "build", module+"...")
	cmd.Env = append(os.Environ(), "GOOS=darwin", "CGO_ENABLED=0")
	output(t, cmd)
}

// The example is a module of its own, as a user's program is: nothing else would notice that it no longer builds.
func TestGoExampleBuilds(t *testing.T) {
	cmd := exec.Command("go", "vet", ".")
	cmd.Dir = filepath.Join(root(t), "examples", "go")
	output(t, cmd)
}

// What is not done is an issue, where somebody looks for it, and not a comment.
func TestNothingIsLeftForLater(t *testing.T) {
	marker := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	for path, text := range texts(t) {
		for i, line := range bytes.Split(text, []byte("\n")) {
			if marker.Match(line) {
				t.Errorf("%s:%d: got %q, want no such marker", path, i+1, bytes.TrimSpace(line))
			}
		}
	}
}

// A link in a document goes to a file that is there.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for path, text := range texts(t) {
		if !strings.HasSuffix(path, ".md") {
			continue
		}
		for _, found := range link.FindAllSubmatch(text, -1) {
			target := filepath.Join(root(t), filepath.Dir(path), string(found[1]))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: got %v, want a file", path, found[1], err)
			}
		}
	}
}

// texts reads every text of the tree, by its path from the root. What was built, and folders of tools, are not the
// tree's.
func texts(t *testing.T) map[string][]byte {
	t.Helper()
	top, all := root(t), map[string][]byte{}
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || path == filepath.Join(top, "bin")):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte{0}) {
			name, _ := filepath.Rel(top, path) // both start with top
			all[name] = text
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	return all
}

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(output(t, exec.Command("go", "list", "-m", "-f", "{{.Dir}}")))
}
