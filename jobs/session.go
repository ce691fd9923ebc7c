package jobs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Each statement is planned once, for whatever arguments, maybe while the table is still empty. So only plans are
// allowed that stay good when it is full: rows are found by an index or by their place, one by one.
const sessionSQL = `
select set_config('application_name', $1, false),
	set_config('plan_cache_mode', 'force_generic_plan', false),
	set_config('enable_seqscan', 'off', false),
	set_config('enable_hashjoin', 'off', false),
	set_config('enable_mergejoin', 'off', false),
	-- A scan that is not to be counts as so dear that even a plan of a few rows would be compiled first, for a second.
	set_config('jit', 'off', false),
	set_config('default_transaction_isolation', 'read committed', false),
	set_config('lock_timeout', $2, false),
	set_config('statement_timeout', '0', false),
	set_config('idle_in_transaction_session_timeout', $3, false)`

// PrepareSession makes conn fit for Acquire and all that follows it, whatever its role or database have as their
// defaults. name is what pg_stat_activity shows. A lock is waited for a tenth of the lease, well under the time an
// operation should be given, so that the connection outlives the wait.
func PrepareSession(ctx context.Context, conn *pgx.Conn, name string, lease time.Duration) error {
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	if _, err := conn.Exec(ctx, sessionSQL, name, milliseconds(lease/10), milliseconds(lease)); err != nil {
		return fmt.Errorf("prepare session: %w", err)
	}
	return nil
}
