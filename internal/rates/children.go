package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/tryout"
)

// holder is a child as the table names it. It needs Linux's /proc.
type holder struct {
	Queue string
	PID   int
}

// kill kills it, and reports whether it was there. The handle stays with one process, so that nobody is hit who got
// its number later.
func (h holder) kill() (bool, error) {
	process, err := os.FindProcess(h.PID)
	if err != nil {
		return false, nil
	}
	defer process.Release()
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", h.PID)) // none: it has ended
	if words := strings.Split(string(line), "\x00"); len(words) < 3 || words[1] != "child" || words[2] != h.Queue {
		return false, nil
	}
	err = process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		return false, nil
	}
	return err == nil, err
}

const holderSQL = `select queue, pid from queues where queue = $1 and supervisor is not null`

// killChild kills the child that holds a queue, as soon as there is one. The first death of a child is followed by a
// start at once, a second in a row waits on purpose: unless its settings change, which makes it another child.
func (s *scene) killChild(ctx context.Context, queue string) error {
	db, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	for hit := false; !hit; {
		var h holder
		switch err := db.QueryRow(ctx, holderSQL, queue).Scan(&h.Queue, &h.PID); {
		case err == nil:
			if hit, err = h.kill(); err != nil {
				return err
			}
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		if !hit && !tryout.Pause(ctx, 5*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	s.mu.Lock()
	s.deaths[queue]++
	second := s.deaths[queue]%2 == 0
	s.mu.Unlock()
	if !second {
		return nil
	}
	return s.change(func() { s.changes[queue]++ })
}
