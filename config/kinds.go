package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is what the value of a key must be, with its bounds.
type kind interface {
	// must completes "must be".
	must() string
	// read turns a value of the TOML tree, its variables replaced, into that of the field. The error is
	// errWrong, or says more; it never has the value in it, which may come from the environment.
	read(value any) (any, error)
}

// errWrong says no more than that a value is not what it must be.
var errWrong = errors.New("")

// duration is a text like "30s" or "1h30m".
type duration struct{ min, max time.Duration }

const day = 24 * time.Hour

var (
	durationForm = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$`)
	durationPart = regexp.MustCompile(`([0-9.]+)([a-z]+)`)
	digitsOnly   = regexp.MustCompile(`^[0-9.]+$`)
)

func (d duration) must() string {
	return fmt.Sprintf(`a duration in quotes from %q to %q, like "30s", "5m" or "1h30m"`, showDuration(d.min), showDuration(d.max))
}

func (d duration) read(value any) (any, error) {
	switch value.(type) {
	case int64, float64:
		return nil, errors.New("a number without a unit")
	}
	text, ok := value.(string)
	if !ok {
		return nil, errWrong
	}
	sum, err := ParseDuration(text)
	switch {
	case err != nil:
		return nil, err
	case sum > d.max:
		return nil, errTooLong
	case sum < d.min:
		return nil, errors.New("too short")
	}
	return sum, nil
}

var errTooLong = errors.New("too long")

// ParseDuration reads a duration as the file has it: numbers with a unit each, of ms, s, m, h and d, like "30s",
// "1h30m" or "7d". It is never negative.
func ParseDuration(text string) (time.Duration, error) {
	if digitsOnly.MatchString(text) {
		return 0, errors.New("a number without a unit")
	}
	if !durationForm.MatchString(text) {
		return 0, errWrong
	}
	var sum time.Duration
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		step, err := durationOf(part[1], part[2])
		if err != nil || step > math.MaxInt64-sum {
			return 0, errTooLong
		}
		sum += step
	}
	return sum, nil
}

// durationOf knows days besides the units of time.ParseDuration.
func durationOf(number, unit string) (time.Duration, error) {
	if unit != "d" {
		return time.ParseDuration(number + unit)
	}
	hours, err := time.ParseDuration(number + "h")
	if hours > math.MaxInt64/24 {
		return 0, errWrong
	}
	return 24 * hours, err
}

// showDuration writes d as a file would: "31d", "1h", "100ms".
func showDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// size is a text like "256MB": a number of bytes. Its units are powers of 1024.
type size struct{ min, max int64 }

const (
	kilobyte = int64(1) << 10
	megabyte = kilobyte << 10
	gigabyte = megabyte << 10
)

var (
	sizeForm  = regexp.MustCompile(`^([0-9]+)(KB|MB|GB)$`)
	sizeUnits = map[string]int64{"KB": kilobyte, "MB": megabyte, "GB": gigabyte}
)

func (s size) must() string {
	return fmt.Sprintf(`a size in quotes from "%dMB" to "%dGB", like "256MB"`, s.min/megabyte, s.max/gigabyte)
}

func (s size) read(value any) (any, error) {
	if _, ok := value.(int64); ok {
		return nil, errors.New("a number without a unit")
	}
	text, ok := value.(string)
	parts := sizeForm.FindStringSubmatch(text)
	if !ok || parts == nil {
		return nil, errWrong
	}
	unit := sizeUnits[parts[2]]
	n, err := strconv.ParseInt(parts[1], 10, 64)
	switch {
	case err != nil, n > s.max/unit:
		return nil, errors.New("too much")
	case n*unit < s.min:
		return nil, errors.New("too little")
	}
	return n * unit, nil
}

// whole is an integer.
type whole struct{ min, max int64 }

func (w whole) must() string { return fmt.Sprintf("a whole number from %d to %d", w.min, w.max) }

func (w whole) read(value any) (any, error) {
	n, ok := value.(int64)
	if !ok || n < w.min || n > w.max {
		return nil, errWrong
	}
	return int(n), nil
}

// number is an integer or a float.
type number struct{ min, max float64 }

func (n number) must() string { return fmt.Sprintf("a number from %v to %v", n.min, n.max) }

func (n number) read(value any) (any, error) {
	f, ok := value.(float64)
	if i, whole := value.(int64); whole {
		f, ok = float64(i), true
	}
	if !ok || !(f >= n.min && f <= n.max) { // so that nan is refused
		return nil, errWrong
	}
	return f, nil
}

// percent is a text like "1%"; its field is a fraction.
type percent struct{ min, max float64 }

var percentForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?%$`)

func (p percent) must() string {
	return fmt.Sprintf(`a percentage in quotes from "%v%%" to "%v%%"`, p.min, p.max)
}

func (p percent) read(value any) (any, error) {
	text, ok := value.(string)
	if !ok || !percentForm.MatchString(text) {
		return nil, errWrong
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || f < p.min || f > p.max {
		return nil, errWrong
	}
	return f / 100, nil
}

// choice is one of a few texts.
type choice []string

func (c choice) must() string { return `"` + strings.Join(c, `" or "`) + `"` }

func (c choice) read(value any) (any, error) {
	text, ok := value.(string)
	if !ok || !slices.Contains(c, text) {
		return nil, errWrong
	}
	return text, nil
}

// words is a text that matches a form, of a length in bytes.
type words struct {
	what     string
	form     *regexp.Regexp
	min, max int
}

func (w words) must() string { return w.what }

func (w words) read(value any) (any, error) {
	text, ok := value.(string)
	if !ok || len(text) < w.min || len(text) > w.max || !w.form.MatchString(text) {
		return nil, errWrong
	}
	return text, nil
}

// list is some elements. They are read one by one, as item: each has a line of its own.
type list struct {
	what string
	item kind
	most int // elements; 0: any number
	none any // what a list without any is; nil: a fault
	// own is what no two elements may have the same, and ownName what that is called; nil: there is no such thing.
	own     func(element any) any
	ownName string
}

func (l list) must() string { return l.what }

func (l list) read(any) (any, error) { return nil, errWrong }
