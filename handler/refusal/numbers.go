package refusal

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// From these on a plain number is a time since 1970, in seconds or in milliseconds, whatever its header is said to
// mean: as a wait the smaller one is 31 years.
const (
	epochSeconds = 1_000_000_000
	epochMillis  = 1_000_000_000_000
)

// maxDigits is how many digits of a number are read: what fits 64 bits.
const maxDigits = 20

// maxTime is the length in bytes of the longest text that is tried as a time.
const maxTime = 64

// waitFor is how long after clock the time is that text names: a plain number, in unit or since 1970, a duration like
// 6m0s, or a date. It is negative for what is past, and math.MaxInt64 for what is too far away to count.
func waitFor(text string, unit time.Duration, clock time.Time) (time.Duration, bool) {
	if len(text) > maxTime {
		return 0, false
	}
	if n, ok := parseDecimal(text); ok {
		switch {
		case n.whole >= epochMillis:
			return time.Unix(0, 0).Add(n.times(time.Millisecond)).Sub(clock), true
		case n.whole >= epochSeconds:
			return time.Unix(0, 0).Add(n.times(time.Second)).Sub(clock), true
		}
		return n.times(unit), true
	}
	if d, ok := parseDuration(text); ok {
		return d, true
	}
	t, ok := parseDate(text, clock)
	return t.Sub(clock), ok
}

// decimal is a number as headers write it. Floating point would take NaN, Inf and 1e9 as well, and round down.
type decimal struct {
	whole      uint64 // math.MaxUint64 if it is more
	billionths uint64 // rounded up, so up to 1,000,000,000
}

// parseDecimal reads at most maxDigits digits, with or without a point between them, and nothing else.
func parseDecimal(text string) (decimal, bool) {
	whole, part, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(part) || len(whole)+len(part) > maxDigits {
		return decimal{}, false
	}
	n, err := strconv.ParseUint(whole, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // beyond its range n is the largest there is
		return decimal{}, false
	}
	return decimal{n, billionths(part)}, true
}

func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// billionths reads the digits after a point.
func billionths(part string) uint64 {
	const places = 9
	head, tail := part, ""
	if len(part) > places {
		head, tail = part[:places], part[places:]
	}
	n, _ := strconv.ParseUint(head+strings.Repeat("0", places-len(head)), 10, 64)
	if strings.Trim(tail, "0") != "" {
		n++
	}
	return n
}

func (n decimal) zero() bool { return n == decimal{} }

// times is n units, rounded up, and math.MaxInt64 if a Duration does not hold them.
func (n decimal) times(unit time.Duration) time.Duration {
	if n.whole >= uint64(math.MaxInt64/unit) {
		return math.MaxInt64
	}
	high, low := bits.Mul64(n.billionths, uint64(unit))
	part, rest := bits.Div64(high, low, 1_000_000_000)
	if rest > 0 {
		part++
	}
	return time.Duration(n.whole)*unit + time.Duration(part)
}

// units are those of a duration, as Go and those who took it over write them.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// parseDuration reads numbers that have a unit each, like 1h2m3.5s. time.ParseDuration takes signs and no days.
func parseDuration(text string) (total time.Duration, ok bool) {
	for text != "" {
		number := text[:len(text)-len(strings.TrimLeft(text, "0123456789."))]
		text = text[len(number):]
		name := text[:len(text)-len(strings.TrimLeftFunc(text, notDigit))]
		text = text[len(name):]
		n, isNumber := parseDecimal(number)
		unit, isUnit := units[name]
		if !isNumber || !isUnit {
			return 0, false
		}
		total += min(n.times(unit), math.MaxInt64-total)
		ok = true
	}
	return total, ok
}

func notDigit(r rune) bool { return r < '0' || r > '9' }
