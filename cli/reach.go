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

// tightest is how many jobs a second all limits together allow over a long time; 0: there is none.
func tightest(perSecond float64, quotas []config.Quota) float64 {
	for _, q := range quotas {
		if perSecond == 0 || q.PerSecond() < perSecond {
			perSecond = q.PerSecond()
		}
	}
	return perSecond
}

// allowed is tightest for what the database knows of a queue. Of a quota that cannot be read nothing is known.
func allowed(q jobs.QueueStatus) float64 {
	var quotas []config.Quota
	for _, text := range q.Quotas {
		if quota, err := config.ParseQuota(text); err == nil {
			quotas = append(quotas, quota)
		}
	}
	return tightest(q.MaxJobsPerSecond, quotas)
}

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
		short(mean.Seconds()), concurrency, short(float64(concurrency)/mean.Seconds()), perSecondText(digits(perSecond, 5)), would)
}

// short is a number with two digits that count.
func short(f float64) string { return strconv.FormatFloat(digits(f, 2), 'f', -1, 64) }

// digits is a number rounded to so many digits that count.
func digits(f float64, n int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', n, 64), 64)
	if err != nil {
		return f
	}
	return rounded
}

// warnReach tells of limits that cannot be reached: queues are what the database knows.
func (p *program) warnReach(file config.File, queues []jobs.QueueStatus) {
	mean := map[string]time.Duration{}
	for _, q := range queues {
		mean[q.Queue] = q.MeanDuration
	}
	for _, w := range file.Workers {
		if text := unreachable(mean[w.Queue], tightest(w.MaxJobsPerSecond, w.Quotas), w.Concurrency); text != "" {
			p.lines("warning: ", fmt.Sprintf("queue %s: %s", w.Queue, text))
		}
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
