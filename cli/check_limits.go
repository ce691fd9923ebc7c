package cli

import (
	"fmt"
	"math"
	"strings"

	"queuekeeper/config"
)

// warnLimits tells of settings of a file that have no effect because of its others.
func (p *program) warnLimits(file config.File) {
	for _, w := range file.Workers {
		for _, text := range withoutEffect(w) {
			p.lines("warning: ", fmt.Sprintf("queue %s: %s", w.Queue, text))
		}
	}
}

func withoutEffect(w config.Worker) (texts []string) {
	if w.Burst > 1 && w.MaxJobsPerSecond == 0 {
		texts = append(texts, fmt.Sprintf("burst = %d has no effect without max_jobs_per_second", w.Burst))
	}
	if w.MaxJobsPerSecond > 0 && w.PerLane > w.MaxJobsPerSecond {
		texts = append(texts, fmt.Sprintf("max_jobs_per_second_per_lane = %s is never reached: all lanes together have max_jobs_per_second = %s",
			number(w.PerLane), number(w.MaxJobsPerSecond)))
	}
	for _, q := range w.Quotas {
		if why := neverReached(q, w); why != "" {
			texts = append(texts, fmt.Sprintf("the quota %s is never reached: %s", q, why))
		}
	}
	if with := oneAsATurn(w); with != "" && hasWeights(w.Lanes) {
		texts = append(texts, fmt.Sprintf("the weights of [worker.lanes] have no effect with %s: each lane has one job per turn", with))
	}
	return texts
}

func hasWeights(lanes map[string]int) bool {
	for _, weight := range lanes {
		if weight > 1 {
			return true
		}
	}
	return false
}

// neverReached is which other limit of w never lets as many start as q does, or "".
func neverReached(q config.Quota, w config.Worker) string {
	for _, longer := range w.Quotas {
		if longer.Window > q.Window && longer.Starts <= q.Starts {
			return fmt.Sprintf("%s allows no more", longer)
		}
	}
	most := math.Ceil(w.MaxJobsPerSecond*q.Window.Seconds()) + float64(w.Burst) - 1
	if w.MaxJobsPerSecond == 0 || most >= float64(q.Starts) {
		return ""
	}
	pace := "max_jobs_per_second = " + number(w.MaxJobsPerSecond)
	if w.Burst > 1 {
		pace += fmt.Sprintf(" with burst = %d", w.Burst)
	}
	return fmt.Sprintf("%s gives at most %.0f in that time", pace, most)
}

// oneAsATurn is the settings of w by which each lane has one job per turn, or "".
func oneAsATurn(w config.Worker) string {
	var settings []string
	if w.Order == "strict" {
		settings = append(settings, `order = "strict"`)
	}
	if w.PerLane > 0 {
		settings = append(settings, "max_jobs_per_second_per_lane")
	}
	return strings.Join(settings, " and ")
}
