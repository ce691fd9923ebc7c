package jobs

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/testdb"
)

// The session of a child plans once, without looking at arguments, and the statistics may be of a time when the
// table was empty (RE05, RE06). The statements of a Step and of an acquire must still find their few rows by index.
func TestNoStatementReadsTheWholeTable(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := PrepareSession(context.Background(), conn, "plan test", time.Minute); err != nil {
		t.Fatal(err)
	}
	run(`insert into queues (queue, epoch, supervisor, n, c) values ('q', 1, 'a', 1, 1)`)
	run(`alter table jobs set (autovacuum_enabled = off)`)
	run(`alter table jobs disable trigger user`)
	fill := func() {
		run(`insert into jobs (queue, name, max_attempts, state, run_at, epoch)
		select 'q', 'Do', 20, case when i > 10 then 'pending' else 'running' end, now() - i % 1000 * interval '1 s',
			case when i <= 10 then 1 end
		from generate_series(1, 200000) i`)
	}

	ids, attempts, epochs := "'{1,2,3,4,5,6,7,8,9,10}'", "'{0,0,0,0,0,0,0,0,0,0}'", "'{1,1,1,1,1,1,1,1,1,1}'"
	ended := ids + "," + attempts + "," + epochs + ", '{done" + strings.Repeat(",done", 9) + "}'," + attempts + "," + attempts + "," + attempts
	statements := []struct{ name, sql, args string }{
		{"claim of a suspect", claimSuspectSQL, `'q', 1, 'a/1/1', 1, '{5}', '{}', 20, 'web-1/1', 'a', '{b}'`},
		{"claim of a suspect, strict", claimSuspectStrictSQL, `'q', 1, 'a/1/1', 1, '{5}', '{}', 20, 'web-1/1', 'a', '{b}'`},
		{"claim", claimOthersSQL, `'q', 1, 'a/1/1', 10, '{5}', '{}', 20, 'web-1/1', 'a'`},
		{"claim in turn", inTurn().claim, `'q', 1, 'a/1/1', 10, '{5}', '{}', 20, 'web-1/1', 'a', '{}', 0, '{b}', false, '', false`},
		{"claim in turn, strict", inTurn().claimStrict, `'q', 1, 'a/1/1', 10, '{5}', '{}', 20, 'web-1/1', 'a', '{}', 0, '{b}', true, 'z', true`},
		{"head in turn", inTurn().head, `'q', 1, 'a/1/1', 1, '{5}', '{}', 20, 'web-1/1', 'a', '{}', 0, '{b}', false, '', false`},
		{"head in turn, strict", inTurn().headStrict, `'q', 1, 'a/1/1', 1, '{5}', '{}', 20, 'web-1/1', 'a', '{}', 0, '{b}', true, 'z', true`},
		{"started", startedSQL, `'q', 3600, 100`},
		{"record", recordSQL, `'q', 1, 'a/1/1', ` + ended},
		{"gone", goneSQL, ids + `, ` + attempts + `, 1`},
		{"move", moveSQL, `1, ` + ids + `, ` + attempts + `, '{1}'`},
		{"strays", straysSQL, `'q', 2, '{}'`},
		{"due", dueSQL, `'q', '{5}'`},
		{"head", headOthersSQL, `'q', '{5}'`},
		{"head of suspects", headSuspectSQL, `'q', '{5}', '{b}'`},
		{"head of suspects, strict", headSuspectStrictSQL, `'q', '{5}', '{b}'`},
		{"orphans", orphansSQL, `'web', 'boot', 'ns'`},
		{"unserved", unservedSQL, `'{}', 10`},
	}
	for _, planned := range []string{"on the empty table", "without statistics", "with those of the empty table", "with fresh statistics"} {
		switch planned {
		case "on the empty table": // as in a new project: the plans are kept while the table grows
			for _, c := range statements {
				prepare(t, conn, c.name, c.sql)
				explain(t, conn, c.name, c.args)
			}
			fill()
		case "without statistics":
		case "with those of the empty table":
			run(`truncate jobs restart identity`)
			run(`analyze jobs`)
			fill()
		case "with fresh statistics":
			run(`analyze jobs`)
		}
		for _, c := range statements {
			t.Run(c.name+" planned "+planned, func(t *testing.T) {
				if planned != "on the empty table" {
					prepare(t, conn, c.name, c.sql)
				}
				plan := explain(t, conn, c.name, c.args)
				if pages := pagesOf(plan); pages == 0 || pages >= 500 || strings.Contains(plan, "Seq Scan on jobs") {
					t.Errorf("%d pages, want 1 to 499 and no sequential scan of jobs:\n%s", pages, plan)
				}
				if c.name == "claim" && !strings.Contains(plan, "Index Scan using jobs_pending on jobs") {
					t.Errorf("want an index scan of jobs_pending:\n%s", plan)
				}
			})
		}
	}
}

// prepare prepares a statement anew, under its name.
func prepare(t *testing.T, conn *pgx.Conn, name, sql string) {
	t.Helper()
	quoted := pgx.Identifier{name}.Sanitize()
	_, _ = conn.Exec(context.Background(), "deallocate "+quoted, pgx.QueryExecModeSimpleProtocol) // if it is there
	if _, err := conn.Exec(context.Background(), "prepare "+quoted+" as "+Schema("").sql(sql), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// explain executes a prepared statement, takes it back, and returns its plan, which was made without arguments.
func explain(t *testing.T, conn *pgx.Conn, name, args string) string {
	t.Helper()
	ctx := context.Background()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	sql := "explain (analyze, buffers, timing off, costs off) execute " + pgx.Identifier{name}.Sanitize() + "(" + args + ")"
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

var buffers = regexp.MustCompile(`(?:hit|read)=(\d+)`)

// pagesOf adds up the first line of buffers, which is that of the whole statement.
func pagesOf(plan string) (pages int) {
	_, rest, _ := strings.Cut(plan, "Buffers: ")
	line, _, _ := strings.Cut(rest, "\n")
	for _, m := range buffers.FindAllStringSubmatch(line, -1) {
		n, _ := strconv.Atoi(m[1])
		pages += n
	}
	return pages
}
