package cli

import "time"

// DivideTimes makes this process a supervisor whose fixed times, and its children's, are divided by k, but for those
// that tell who hangs.
func DivideTimes(k time.Duration) { times = times.Divided(k) }

// WatchTimes does the same for the times that tell who hangs.
func WatchTimes(k time.Duration) { times = times.Watched(k) }
