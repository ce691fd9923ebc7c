package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const describeSQL = `
update {queues}
set settings = $4
where queue = $1 and epoch = $2 and holder = $3
returning true`

// Describe stores other settings than those of the Bid, for whoever looks from outside.
func (q *Queue) Describe(ctx context.Context, settings any) error {
	text, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("encode settings: %w", err)
	}
	batch := &pgx.Batch{}
	q.queueTrue(batch, describeSQL, q.name, q.epoch, q.holder, string(text))
	if err := q.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("describe queue %s: %w", q.name, err)
	}
	return nil
}
