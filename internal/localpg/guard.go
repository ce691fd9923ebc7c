package localpg

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

//go:embed guard.sh
var guardScript string

// guard is the process that starts Postgres and outlives us just long enough to end it. It, and so Postgres,
// holds none of our descriptors but the two pipes and the lock: whoever waits for the end of our output does
// not wait for them.
type guard struct {
	cmd     *exec.Cmd
	orders  *os.File // its end of file is the end of Postgres
	answers *os.File
	lines   *bufio.Reader
}

// startGuard gives the guard, and through it Postgres, the lock of the cluster's folder: the folder is in use
// until the last of them is gone.
func startGuard(who *owner, lock *os.File, arguments ...string) (*guard, error) {
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirOrders.Close()
	answers, theirAnswers, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, err
	}
	defer theirAnswers.Close()

	cmd := exec.Command("/bin/sh", append([]string{"-c", guardScript, "queuekeeper-postgres-guard"}, arguments...)...)
	cmd.Dir = "/"
	// Nothing else: PGDATA, PGPORT and secrets of ours are not for it.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.Stdin, cmd.Stdout = theirOrders, theirAnswers
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = who.attributes()
	if err := cmd.Start(); err != nil {
		orders.Close()
		answers.Close()
		return nil, fmt.Errorf("start the guard of Postgres: %w", err)
	}
	return &guard{cmd, orders, answers, bufio.NewReader(answers)}, nil
}

// do gives an order and waits for its end. When ctx ends first the guard still carries it out: the caller
// must end the guard then.
func (g *guard) do(ctx context.Context, order string) error {
	if _, err := fmt.Fprintln(g.orders, order); err != nil {
		return fmt.Errorf("%s Postgres: its guard is gone: %w", order, err)
	}
	type answer struct {
		status string
		err    error
	}
	answered := make(chan answer, 1) // the answer may come after we left
	go func() {
		status, err := g.lines.ReadString('\n')
		answered <- answer{strings.TrimSpace(status), err}
	}()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s Postgres: %w", order, context.Cause(ctx))
	case a := <-answered:
		if a.err != nil {
			return fmt.Errorf("%s Postgres: its guard is gone: %w", order, a.err)
		}
		if a.status != "0" {
			return fmt.Errorf("%s Postgres: exit status %s", order, a.status)
		}
		return nil
	}
}

// end lets the guard end Postgres and waits for both.
func (g *guard) end() error {
	g.orders.Close()
	err := g.cmd.Wait()
	g.answers.Close()
	if err != nil {
		return fmt.Errorf("stop Postgres: %w", err)
	}
	return nil
}
