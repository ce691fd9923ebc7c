package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/localpg"
)

// The program as it is delivered: with the race detector in it two hundred of its processes are too much.
func TestTwoHundredQueuesStartAndStop(t *testing.T) {
	t.Parallel()
	const queues, shutdownTimeout = 200, 25 * time.Second
	var file strings.Builder
	for n := range queues {
		fmt.Fprintf(&file, "[[worker]]\nqueue = \"q%d\"\ncommand = [\"true\"]\n", n)
	}
	s := siteAt(t, roomyPostgres(t), file.String())
	s.does(nil, "migrate")
	cmd := s.command([]string{"run"})
	cmd.Path = build(t, s.path("queuekeeper"))
	p := s.start(cmd)
	s.exec(`insert into jobs (queue, name) select 'q' || n, 'Sync' from generate_series(0, $1) n`, queues-1)
	s.until(`select count(*) = $1 from queues where supervisor is not null`, queues)
	s.allDone()
	p.signal(syscall.SIGTERM)
	if took := p.exits(0); took > shutdownTimeout {
		t.Errorf("from TERM to the end: got %v, want within shutdown_timeout of %v", took, shutdownTimeout)
	}
	s.cleanEnd("200 done")
}

// roomyPostgres is a Postgres of the test's own with more connections than children.
func roomyPostgres(t *testing.T) (url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	settings := map[string]string{"fsync": "off", "max_connections": "300"}
	cluster, err := localpg.Start(ctx, localpg.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster.URL("postgres")
}

func build(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", path, "queuekeeper/cmd/queuekeeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}
