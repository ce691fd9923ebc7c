package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// Quota is never more than so many starts in any window of that length.
type Quota struct {
	Starts int           `json:"starts"`
	Window time.Duration `json:"window"`
}

// String is the quota as the file has it: "5000/1h".
func (q Quota) String() string { return fmt.Sprintf("%d/%s", q.Starts, showDuration(q.Window)) }

// PerSecond is how many starts a second it comes to.
func (q Quota) PerSecond() float64 { return float64(q.Starts) / q.Window.Seconds() }

// ParseQuota reads what String writes.
func ParseQuota(text string) (Quota, error) {
	q, err := quota{math.MaxInt32, duration{time.Second, 31 * day}}.read(text)
	if err != nil {
		return Quota{}, err
	}
	return q.(Quota), nil
}

// quota is a text like "5000/1h". starts is the largest number it may have.
type quota struct {
	starts int64
	window duration
}

var quotaForm = regexp.MustCompile(`^([0-9]+)/(.*)$`)

func (q quota) must() string {
	return fmt.Sprintf(`a text like "5000/1h": a whole number from 1 to %d, a slash, and a duration from %q to %q`,
		q.starts, showDuration(q.window.min), showDuration(q.window.max))
}

func (q quota) read(value any) (any, error) {
	text, ok := value.(string)
	parts := quotaForm.FindStringSubmatch(text)
	if !ok || parts == nil {
		return nil, errWrong
	}
	starts, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || starts > q.starts {
		return nil, errors.New("too many")
	}
	if starts == 0 {
		return nil, errors.New("none at all")
	}
	window, err := q.window.read(parts[2])
	if err != nil {
		return nil, err
	}
	return Quota{int(starts), window.(time.Duration)}, nil
}

// windowOf is what no two quotas of a queue may share: of two for one window only the smaller would ever hold.
func windowOf(q any) any { return q.(Quota).Window }
