// Package jobs holds all SQL on the tables jobs, queues and lanes, each statement above its only caller, and the
// public API: enqueue from any transaction, and the words a handler answers with.
package jobs

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// Schema names the schema that holds the tables. "" means: where the connection's search_path points.
type Schema string

// sql puts the quoted names of the tables into a statement, for {jobs}, {queues} and {lanes}.
func (s Schema) sql(statement string) string {
	return strings.NewReplacer("{jobs}", s.table("jobs"), "{queues}", s.table("queues"), "{lanes}", s.table("lanes")).Replace(statement)
}

func (s Schema) table(name string) string {
	if s == "" {
		return name
	}
	return pgx.Identifier{string(s), name}.Sanitize()
}
