package supervisor

import (
	"encoding/json"
	"slices"
	"sync"

	"queuekeeper/internal/wire"
)

// outbox is what a child is still to be told. Of two lines that do the same only the later counts, so it stays
// small however little the child reads, and nobody who puts something in ever waits.
type outbox struct {
	mu     sync.Mutex
	orders []wire.Control // at most one for each Do, the oldest first
	more   chan struct{}  // capacity 1: something is in
}

func newOutbox() *outbox { return &outbox{more: make(chan struct{}, 1)} }

func (o *outbox) put(c wire.Control) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.orders = slices.DeleteFunc(o.orders, func(earlier wire.Control) bool { return earlier.Do == c.Do })
	o.orders = append(o.orders, c)
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// take empties the box and returns what was in it, a line each.
func (o *outbox) take() (lines []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.orders {
		line, err := json.Marshal(c)
		if err != nil {
			panic(err) // texts and numbers, which settings had too
		}
		lines = append(append(lines, line...), '\n')
	}
	o.orders = nil
	return lines
}
