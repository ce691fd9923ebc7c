package refusal

import "time"

// named is a time that an answer names.
type named struct {
	wait  time.Duration // from now; 0 or less: not after now
	by    string        // for people: the header or field, and what it says
	retry bool          // it says when to call again, not when a count starts anew
}

// first is the first of all that is after now. The second time to call again makes up for what rounding took from the
// first (Discord's header has whole seconds, its body has more), so less than a second: more is another unit, or
// another meaning. If none is after now, but there are some, it is the first, and Least.
func first(all []named) (named, bool) {
	var found, finest named
	for _, n := range all {
		switch {
		case n.wait <= 0:
		case found.by == "":
			found, finest = n, n
		case n.retry && found.retry && n.wait > finest.wait && n.wait-found.wait < time.Second:
			finest = n
		}
	}
	if finest.by != "" {
		return finest, true
	}
	if len(all) == 0 {
		return named{}, false
	}
	return named{wait: Least, by: all[0].by}, true
}

// bounded is d in whole milliseconds, rounded up, or Longest if that is less.
func bounded(d time.Duration) (_ time.Duration, capped bool) {
	if d > Longest {
		return Longest, true
	}
	if part := d % time.Millisecond; part > 0 {
		d += time.Millisecond - part
	}
	return d, false
}
