package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/internal/testdb"
	"queuekeeper/migrations"
)

func TestConstraintsRefuseWhatARawInsertGetsWrong(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	long := strings.Repeat("é", 128) // 256 bytes
	for _, c := range []struct{ columns, values, want string }{
		{"queue", "'GitHub'", "queue_is_lower_case_letters_digits_dot_dash_underscore"},
		{"queue", "''", "queue_is_lower_case_letters_digits_dot_dash_underscore"},
		{"queue", "E'github\\n'", "queue_is_lower_case_letters_digits_dot_dash_underscore"},
		{"queue", "'.github'", "queue_is_lower_case_letters_digits_dot_dash_underscore"},
		{"queue", "'" + strings.Repeat("q", 59) + "'", "queue_is_lower_case_letters_digits_dot_dash_underscore"},
		{"name", "''", "name_has_1_to_255_bytes"},
		{"name", "'" + long + "'", "name_has_1_to_255_bytes"},
		{"lane", "''", "lane_has_1_to_255_bytes"},
		{"lane", "'" + long + "'", "lane_has_1_to_255_bytes"},
		{"unique_key", "''", "unique_key_has_1_to_255_bytes"},
		{"unique_key", "'" + long + "'", "unique_key_has_1_to_255_bytes"},
		{"state", "'Pending'", "state_is_pending_running_done_or_dead"},
		{"state", "'running'", "running_job_has_epoch"},
		{"epoch", "1", "only_a_running_job_is_locked"},
		{"locked_at", "now()", "only_a_running_job_is_locked"},
		{"locked_by", "'web/1'", "only_a_running_job_is_locked"},
		{"attempts", "-1", "of_the_attempts_some_are_excused_and_of_these_some_throttled"},
		{"excused", "1", "of_the_attempts_some_are_excused_and_of_these_some_throttled"},
		{"attempts, excused, throttled", "2, 1, 2", "of_the_attempts_some_are_excused_and_of_these_some_throttled"},
		{"requeues", "-1", "requeues_are_not_negative"},
		{"max_attempts", "0", "max_attempts_is_1_to_1000000"},
		{"max_attempts", "1000001", "max_attempts_is_1_to_1000000"},
	} {
		err := insert(t, conn, c.columns, c.values)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.ConstraintName != c.want {
			t.Errorf("(%s) values (%s): got %v, want constraint %s", c.columns, c.values, err, c.want)
		}
	}
}

func TestConstraintsTakeWhatIsSound(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	for _, c := range []struct{ columns, values string }{
		{"queue", "'" + strings.Repeat("q", 58) + "'"}, // and its channel: 63 bytes
		{"queue", "'0.a_b-c'"},
		{"name", "'" + strings.Repeat("n", 255) + "'"},
		{"args", "null"},
		{"args", "'[1]'"},
		{"run_at", "'infinity'"},
		{"run_at", "'-infinity'"},
		{"max_attempts", "1"},
		{"state, epoch, locked_at, locked_by", "'running', 1, now(), 'web/1'"},
		{"state", "'dead'"},
	} {
		if err := insert(t, conn, c.columns, c.values); err != nil {
			t.Errorf("(%s) values (%s): got %v, want nil", c.columns, c.values, err)
		}
	}
}

// insert fills in the queue and the name where columns do not have them.
func insert(t *testing.T, conn *pgx.Conn, columns, values string) error {
	t.Helper()
	for column, value := range map[string]string{"queue": "'github'", "name": "'SyncIssues'"} {
		if !slices.Contains(strings.Split(columns, ", "), column) {
			columns, values = columns+", "+column, values+", "+value
		}
	}
	_, err := conn.Exec(t.Context(), fmt.Sprintf(`insert into jobs (%s) values (%s)`, columns, values))
	return err
}

func TestUniqueKeyCountsOnlyWhileItsJobIsPendingOrRunning(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	const columns = "unique_key, state"
	for _, state := range []string{"'dead'", "'done'", "'dead'", "'pending'"} {
		if err := insert(t, conn, columns, "'k', "+state); err != nil {
			t.Errorf("state %s: got %v, want nil", state, err)
		}
	}
	var pg *pgconn.PgError
	if err := insert(t, conn, columns, "'k', 'pending'"); !errors.As(err, &pg) || pg.ConstraintName != "jobs_unique_key" {
		t.Errorf("second pending: got %v, want constraint jobs_unique_key", err)
	}
}

func TestStatementNotifiesOncePerQueueWithItsSchema(t *testing.T) {
	url := testdb.Empty(t)
	listener, writer := testdb.Connect(t, url), testdb.Connect(t, url)
	up(t, writer, odd, migrations.Options{})
	execute(t, listener, `listen "jobs_github"`, `listen "jobs_slack"`, `listen "jobs_postmark"`, `listen "end"`)
	jobs := pgx.Identifier{odd, "jobs"}.Sanitize()

	execute(t, writer,
		`insert into `+jobs+` (queue, name, run_at)
			select q, 'SyncIssues', now() + interval '1 hour' from unnest(array['github', 'slack']) q, generate_series(1, 100)`,
		`insert into `+jobs+` (queue, name, state) values ('postmark', 'Send', 'done')`, // nothing for a worker
		`insert into `+jobs+` (queue, name) select 'slack', 'Post' where false`,
		`update `+jobs+` set run_at = now()`,
		`notify "end"`)
	got := notifications(t, listener)
	want := []string{"jobs_github " + odd, "jobs_slack " + odd}
	if !slices.Equal(got, want) {
		t.Errorf("notifications: got %q, want %q", got, want)
	}
}

func TestNoNotifyDropsTheTriggerAndPlainUpBringsItBack(t *testing.T) {
	url := testdb.Empty(t)
	listener, writer := testdb.Connect(t, url), testdb.Connect(t, url)
	execute(t, listener, `listen "jobs_github"`, `listen "end"`)
	for _, off := range []bool{true, false, true, false} {
		up(t, writer, "", migrations.Options{NoNotify: off})
		if state := check(t, writer, ""); state.Notify == off {
			t.Errorf("NoNotify %v: got state.Notify %v, want %v", off, state.Notify, !off)
		}
		execute(t, writer, `insert into jobs (queue, name) values ('github', 'SyncIssues')`, `notify "end"`)
		if got := notifications(t, listener); (len(got) == 0) != off {
			t.Errorf("NoNotify %v: got notifications %q, want some: %v", off, got, !off)
		}
	}
}

// notifications returns those that come before that on the channel "end", sorted.
func notifications(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []string
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			t.Fatalf("wait for a notification: %v; got so far %q", err, got)
		}
		if n.Channel == "end" {
			slices.Sort(got)
			return got
		}
		got = append(got, n.Channel+" "+n.Payload)
	}
}

func TestHashIsStable(t *testing.T) {
	if a, b := migrations.Hash(), migrations.Hash(); a != b || len(a) != 64 {
		t.Errorf("Hash: got %q and %q, want the same 64 digits", a, b)
	}
}
