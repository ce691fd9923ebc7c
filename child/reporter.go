package child

import (
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"queuekeeper/internal/wire"
)

// life is what the loop shows of itself at every turn, for others to see whether it still turns.
type life struct {
	turns   atomic.Uint64
	running atomic.Int64
}

// reporter writes to the status pipe without ever making the loop wait: a supervisor that does not read loses
// news, not its child. It also gives the signs of life.
type reporter struct {
	life  life
	lines chan wire.Status
	done  chan struct{}
}

func newReporter(to io.Writer, beat time.Duration) *reporter {
	r := &reporter{lines: make(chan wire.Status, 16), done: make(chan struct{})}
	go r.run(json.NewEncoder(to), beat)
	return r
}

// run writes until the reporter is closed. An error of the pipe means that there is nobody to tell.
func (r *reporter) run(to *json.Encoder, every time.Duration) {
	defer close(r.done)
	beat := time.NewTicker(every)
	defer beat.Stop()
	var seen uint64 // turns of the loop at the last beat
	var stale time.Duration
	for {
		select {
		case s, open := <-r.lines:
			if !open {
				return
			}
			_ = to.Encode(s)
		case <-beat.C:
			// Counted in beats: after this process itself was stopped, its loop has missed nothing.
			stale += every
			if turns := r.life.turns.Load(); turns != seen {
				seen, stale = turns, 0
			}
			_ = to.Encode(wire.Status{Is: wire.Beat, Stale: stale, Running: int(r.life.running.Load())})
		}
	}
}

// maxDetail keeps a status, however its detail is escaped, within what a supervisor reads as one line; in bytes.
const maxDetail = 2 << 10

func (r *reporter) say(s wire.Status) {
	if len(s.Detail) > maxDetail {
		s.Detail = strings.ToValidUTF8(s.Detail[:maxDetail], "") + "…"
	}
	select {
	case r.lines <- s:
	default:
	}
}

// close lets the last lines out, if somebody reads them.
func (r *reporter) close() {
	close(r.lines)
	select {
	case <-r.done:
	case <-time.After(time.Second):
	}
}
