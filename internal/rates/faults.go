package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/tryout"
)

// fault is something that happens to a scene while it goes on.
type fault func(context.Context) error

// faultTime is how long before the end of a phase the last fault has happened, so that what follows is seen too.
const faultTime = 2 * time.Second

// killing kills the child of each trial at random moments.
func killing(s *scene, p phase) (faults []fault) {
	for _, t := range p.trials {
		from := time.Duration(t.from*float64(p.length)) + time.Second
		to := time.Duration(t.to*float64(p.length)) - faultTime
		faults = append(faults, func(ctx context.Context) error {
			var moments []time.Duration
			for range p.kills {
				moments = append(moments, from+rand.N(to-from))
			}
			slices.Sort(moments)
			for _, at := range moments {
				if err := s.until(ctx, at); err != nil {
					return err
				}
				if err := s.killChild(ctx, t.queue()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return faults
}

// reloading gives every queue its other limit, in the middle.
func reloading(s *scene, p phase) []fault {
	return []fault{func(ctx context.Context) error {
		// In the gap before the wave of the middle: what the bucket has saved until then must not come with that wave.
		if err := s.until(ctx, p.length/2-400*time.Millisecond); err != nil {
			return err
		}
		began := procs.BootClock()
		err := s.change(func() {
			for i, t := range p.trials {
				if t.then != (limit{}) {
					s.workers[i].limits = t.then.toml()
				}
			}
		})
		if err != nil {
			return err
		}
		for _, t := range p.trials {
			if err := s.active.tookOn(ctx, t.queue()); err != nil {
				return err
			}
		}
		s.switched = reloaded{onBoot(began), onBoot(procs.BootClock())}
		return nil
	}}
}

// outages are those of the database: when, as fractions of the phase, and for how long. One is longer than a lease.
var outages = []struct {
	at    float64
	lasts time.Duration
}{{0.2, 500 * time.Millisecond}, {0.4, lease + 2*time.Second}, {0.7, time.Second}}

// restarting stops Postgres as a crash would, and starts it again.
func restarting(s *scene, p phase) []fault {
	chosen := outages
	if s.short {
		chosen = chosen[:1]
	}
	return []fault{func(ctx context.Context) error {
		for _, o := range chosen {
			if err := s.until(ctx, time.Duration(o.at*float64(p.length))); err != nil {
				return err
			}
			if err := s.postgres.Halt(ctx); err != nil {
				return err
			}
			tryout.Pause(ctx, o.lasts)
			if err := s.postgres.Resume(ctx); err != nil {
				return err
			}
			s.faults++
		}
		return nil
	}}
}

// takingOver has another supervisor of the same file stand by, and ends the one that holds the queues: killed with all
// its children, and told by TERM, in turn.
func takingOver(s *scene, p phase) []fault {
	times := 5
	if s.short {
		times = 2
	}
	return []fault{func(ctx context.Context) error {
		for i := range times {
			next, err := s.start(ctx)
			if err != nil {
				return err
			}
			if err := s.until(ctx, p.length*time.Duration(i+1)/time.Duration(times+1)); err != nil {
				return err
			}
			if err := s.end(ctx, i%2 == 0); err != nil {
				return err
			}
			s.active = next
			s.faults++
		}
		return nil
	}}
}

const holdersSQL = `select queue, pid from queues where supervisor is not null`

// end ends the active supervisor; killed means: with all its children at once.
func (s *scene) end(ctx context.Context, killed bool) error {
	if !killed {
		return s.active.tell(syscall.SIGTERM)
	}
	db, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	rows, err := db.Query(ctx, holdersSQL)
	if err != nil {
		return err
	}
	holders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[holder])
	if err != nil {
		return err
	}
	errs := []error{s.active.tell(syscall.SIGKILL)}
	for _, h := range holders {
		_, err := h.kill() // one that was not there had died a moment before
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// change rewrites the file and has it taken on.
func (s *scene) change(what func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
	if err := s.writeFile(); err != nil {
		return err
	}
	if err := s.active.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	return nil
}
