package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/tryout"
)

// patience is how long we wait for what must happen, on a busy machine.
const patience = time.Minute

// patient is a connection that outlives restarts of Postgres. What fails is done again, so it has to bear that.
type patient struct {
	url  string
	conn *pgx.Conn
}

func (p *patient) do(ctx context.Context, what func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := p.try(ctx, what)
		if err == nil {
			return nil
		}
		p.close()
		if !tryout.Pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

func (p *patient) try(ctx context.Context, what func(context.Context, *pgx.Conn) error) (err error) {
	if p.conn == nil {
		if p.conn, err = pgx.Connect(ctx, p.url); err != nil {
			return err
		}
	}
	return what(ctx, p.conn)
}

func (p *patient) close() {
	if p.conn != nil {
		_ = p.conn.Close(context.Background()) // it is of no use any more
		p.conn = nil
	}
}
