package cli

import "time"

// DivideTimes makes this process a supervisor whose fixed times, and its children's, are divided by k.
func DivideTimes(k time.Duration) { times = times.Divided(k) }
