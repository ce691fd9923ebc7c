package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

// maxConcurrency is the most a file may ask for.
const maxConcurrency = 1000

// neededConcurrency is how many jobs must run at the same time for a queue to reach its limit, if that is more than it
// has; 0: it reaches the limit, or has none, or nothing is known of its jobs.
func neededConcurrency(mean time.Duration, perSecond float64, concurrency int) int {
	busy := mean.Seconds() * perSecond
	if concurrency == 0 || busy <= float64(concurrency) {
		return 0
	}
	return int(math.Ceil(min(busy, math.MaxInt32)))
}

// unreachable says that and why a queue cannot start as many jobs as its limit allows, or "".
func unreachable(mean time.Duration, perSecond float64, concurrency int) string {
	needed := neededConcurrency(mean, perSecond, concurrency)
	if needed == 0 {
		return ""
	}
	would := fmt.Sprintf("concurrency = %d would reach it", needed)
	if needed > maxConcurrency {
		would = fmt.Sprintf("to reach it takes concurrency = %d, and %d is the most", needed, maxConcurrency)
	}
	return fmt.Sprintf("jobs take %s s on average, so concurrency = %d gives at most %s/s of the %s allowed; %s",
		short(mean.Seconds()), concurrency, short(float64(concurrency)/mean.Seconds()), perSecondText(perSecond), would)
}

// short is a number with two digits that count.
func short(f float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 2, 64), 64)
	if err != nil {
		rounded = f
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// warnReach tells of limits that cannot be reached: queues are what the database knows.
func (p *program) warnReach(file config.File, queues []jobs.QueueStatus) {
	mean := map[string]time.Duration{}
	for _, q := range queues {
		mean[q.Queue] = q.MeanDuration
	}
	for _, w := range file.Workers {
		if text := unreachable(mean[w.Queue], w.MaxJobsPerSecond, w.Concurrency); text != "" {
			p.lines("warning: ", fmt.Sprintf("queue %s: %s", w.Queue, text))
		}
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
