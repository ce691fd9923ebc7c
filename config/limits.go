package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits are what a running process takes on of a worker, as keys and values for the log, as the file has them.
func (w Worker) Limits() []any {
	rate := "none"
	if w.MaxJobsPerSecond > 0 {
		rate = shortNumber(w.MaxJobsPerSecond)
	}
	pairs := []any{"max_jobs_per_second", rate, "burst", w.Burst, "headroom", shortNumber(100*w.Headroom) + "%"}
	if len(w.Quotas) > 0 {
		var quotas []string
		for _, q := range w.Quotas {
			quotas = append(quotas, q.String())
		}
		pairs = append(pairs, "quotas", strings.Join(quotas, ","))
	}
	if w.PerLane > 0 {
		pairs = append(pairs, "max_jobs_per_second_per_lane", shortNumber(w.PerLane))
	}
	if len(w.Lanes) > 0 {
		var lanes []string
		for _, lane := range slices.Sorted(maps.Keys(w.Lanes)) {
			lanes = append(lanes, fmt.Sprintf("%q=%d", lane, w.Lanes[lane]))
		}
		pairs = append(pairs, "lanes", strings.Join(lanes, ","))
	}
	return append(pairs, "pause_scope", w.PauseScope)
}

func shortNumber(f float64) string { return strconv.FormatFloat(f, 'g', 10, 64) }
