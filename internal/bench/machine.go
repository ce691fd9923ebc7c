package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// commitsTime is how long the machine's own limit is measured, in seconds, each time just before ours: what else
// the machine does then, it does to both.
const commitsTime = 3

const commitsScript = "update machine set n = n + 1 where id = 1;\n"

// commits is the machine's own limit: how many transactions of one statement that changes one row a single client
// gets committed per second.
func (b *bench) commits(ctx context.Context) (float64, error) {
	script := filepath.Join(b.folder, "commits.sql")
	if err := os.WriteFile(script, []byte(commitsScript), 0o644); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, b.postgres.Bin("pgbench"),
		"-n", "-c", "1", "-M", "prepared", "-T", strconv.Itoa(commitsTime), "-f", script, b.url())
	said, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd, err, said)
	}
	return parseTPS(said)
}

var tpsPattern = regexp.MustCompile(`(?m)^tps = ([0-9.]+) `)

func parseTPS(said []byte) (float64, error) {
	m := tpsPattern.FindSubmatch(said)
	if m == nil {
		return 0, fmt.Errorf("pgbench: no tps in what it said:\n%s", said)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// bare is the machine's own limit for processes that have a connection each: how long it takes to start n processes
// that do nothing and to open n connections that stay open, one after the other.
func (b *bench) bare(ctx context.Context, n int) (time.Duration, error) {
	began := time.Now()
	for range n {
		if err := exec.CommandContext(ctx, "true").Run(); err != nil {
			return 0, err
		}
		conn, err := pgx.Connect(ctx, b.url())
		if err != nil {
			return 0, err
		}
		defer conn.Close(context.WithoutCancel(ctx))
	}
	return time.Since(began), nil
}

func commitsFigure(commits float64) figure {
	return figure{what: "commits of one client (pgbench, one-row UPDATE by key)", unit: "/s", measured: commits}
}
