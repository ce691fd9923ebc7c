package testdb_test

import (
	"context"
	"testing"

	"queuekeeper/internal/testdb"
	"queuekeeper/migrations"
)

func TestEachTestHasADatabaseOfItsOwnWithTheTables(t *testing.T) {
	ctx := context.Background()
	for range 2 { // the second would see the row of the first
		conn := testdb.Connect(t, testdb.New(t))
		if _, err := migrations.Check(ctx, conn, ""); err != nil {
			t.Errorf("Check: got %v, want nil", err)
		}
		if _, err := conn.Exec(ctx, `insert into jobs (queue, name) values ('github', 'SyncIssues')`); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := conn.QueryRow(ctx, `select count(*) from jobs`).Scan(&n); err != nil || n != 1 {
			t.Errorf("jobs: got %d (error %v), want 1", n, err)
		}
	}
}
