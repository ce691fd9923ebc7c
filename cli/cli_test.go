package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"queuekeeper/cli"
	"queuekeeper/internal/testdb"
)

// These divide the fixed times of a program that a test starts: those that tell who hangs by themselves.
const (
	dividedEnv = "QUEUEKEEPER_TEST_TIMES_DIVIDED_BY"
	watchedEnv = "QUEUEKEEPER_TEST_TIMES_WATCHED_BY"
)

// TestMain makes this test binary the program itself where it is started as one: as a supervisor's child, or as
// "queuekeeper" by a test or a script.
func TestMain(m *testing.M) {
	program := func() { os.Exit(cli.Main(testHandlers)) }
	if len(os.Args) > 1 && os.Args[1] == "child" {
		hangAtStart(os.Args[2])
		program()
	}
	for name, divide := range map[string]func(time.Duration){dividedEnv: cli.DivideTimes, watchedEnv: cli.WatchTimes} {
		if k, err := strconv.Atoi(os.Getenv(name)); err == nil {
			divide(time.Duration(k))
		}
	}
	// The race detector keeps a process for a second after its exit: not what is measured here.
	os.Setenv("GORACE", quickExit)
	testscript.Main(m, map[string]func(){"queuekeeper": program})
}

const quickExit = "atexit_sleep_ms=0"

// The scripts say on one page each what a command prints and how it exits.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("DATABASE_URL", "")
			env.Setenv("GORACE", quickExit)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"database": func(ts *testscript.TestScript, _ bool, args []string) { giveDatabase(t, ts, args) },
			"sql":      runSQL,
			"exits":    runExits,
		},
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// giveDatabase is the script command `database [empty]`: DATABASE_URL names a new database, in UTC.
func giveDatabase(t *testing.T, ts *testscript.TestScript, args []string) {
	make := testdb.New
	if len(args) > 0 {
		make = testdb.Empty
	}
	ts.Setenv("DATABASE_URL", make(t))
	runSQL(ts, false, []string{
		`do $$ begin execute format('alter database %I set timezone to ''UTC''', current_database()); end $$`})
}

// runSQL is the script command `sql STATEMENT`, or `! sql STATEMENT`: it prints the rows, or the error.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, ts.Getenv("DATABASE_URL"))
	ts.Check(err)
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, strings.Join(args, " ")).ReadAll()
	if neg != (err != nil) {
		ts.Fatalf("sql: error %v, want one: %v", err, neg)
	}
	if err != nil {
		fmt.Fprintln(ts.Stderr(), err)
	}
	for _, result := range results {
		for _, row := range result.Rows {
			var cells []string
			for _, cell := range row {
				cells = append(cells, string(cell))
			}
			fmt.Fprintln(ts.Stdout(), strings.Join(cells, " "))
		}
	}
}

// runExits is the script command `exits STATUS COMMAND...`.
func runExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
