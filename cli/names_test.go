package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

// The file, the enqueue API and the table each say what a queue may be called, and none imports the other.
func TestFileAndEnqueueAgreeOnTheNamesOfQueues(t *testing.T) {
	for _, name := range []string{
		"a", "9", "a.b-c_d", strings.Repeat("a", 58), strings.Repeat("a", 59), "", "A", "é", "-a", ".a", "_a", "a b", "a/b", "a\n", " a",
	} {
		file := filepath.Join(t.TempDir(), "queues.toml")
		text := fmt.Sprintf("database_url = \"postgres:///x\"\n[[worker]]\nqueue = %q\ncommand = [\"true\"]\n", name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, fault := config.Load(file, os.LookupEnv)
		if refused := jobs.CheckQueue(name); (fault != nil) != (refused != nil) {
			t.Errorf("queue %q: the file says %v, enqueue says %v; want the same", name, fault, refused)
		}
	}
}
