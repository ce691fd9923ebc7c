package cli

import (
	"slices"
	"testing"
	"time"

	"queuekeeper/config"
)

func TestCheckTellsOfSettingsWithoutEffect(t *testing.T) {
	const hour = time.Hour
	quotas := func(list ...config.Quota) []config.Quota { return list }
	weights := map[string]int{"a": 1, "b": 5}
	for _, c := range []struct {
		worker config.Worker
		want   []string
	}{
		{config.Worker{MaxJobsPerSecond: 10, PerLane: 20.5},
			[]string{"max_jobs_per_second_per_lane = 20.5 is never reached: all lanes together have max_jobs_per_second = 10"}},
		{config.Worker{MaxJobsPerSecond: 10, PerLane: 10}, nil},
		{config.Worker{PerLane: 20}, nil},

		{config.Worker{Burst: 5}, []string{"burst = 5 has no effect without max_jobs_per_second"}},
		{config.Worker{Burst: 5, PerLane: 1, Quotas: quotas(config.Quota{Starts: 9, Window: hour})},
			[]string{"burst = 5 has no effect without max_jobs_per_second"}},
		{config.Worker{Burst: 5, MaxJobsPerSecond: 1}, nil},
		{config.Worker{Burst: 1}, nil},

		// Quotas beside each other, whichever comes first.
		{config.Worker{Quotas: quotas(config.Quota{Starts: 1000, Window: hour}, config.Quota{Starts: 5000, Window: time.Minute})},
			[]string{"the quota 5000/1m is never reached: 1000/1h allows no more"}},
		{config.Worker{Quotas: quotas(config.Quota{Starts: 1000, Window: time.Minute}, config.Quota{Starts: 1000, Window: hour})},
			[]string{"the quota 1000/1m is never reached: 1000/1h allows no more"}},
		{config.Worker{Quotas: quotas(config.Quota{Starts: 1000, Window: time.Minute}, config.Quota{Starts: 1001, Window: hour})}, nil},

		// Quotas beside the pace: as many as it allows are reached, one more never is.
		{config.Worker{MaxJobsPerSecond: 1, Burst: 1, Quotas: quotas(config.Quota{Starts: 3600, Window: hour})}, nil},
		{config.Worker{MaxJobsPerSecond: 1, Burst: 1, Quotas: quotas(config.Quota{Starts: 3601, Window: hour})},
			[]string{"the quota 3601/1h is never reached: max_jobs_per_second = 1 gives at most 3600 in that time"}},
		{config.Worker{MaxJobsPerSecond: 1, Burst: 5, Quotas: quotas(config.Quota{Starts: 3604, Window: hour})}, nil},
		{config.Worker{MaxJobsPerSecond: 1, Burst: 5, Quotas: quotas(config.Quota{Starts: 3605, Window: hour})},
			[]string{"the quota 3605/1h is never reached: max_jobs_per_second = 1 with burst = 5 gives at most 3604 in that time"}},
		{config.Worker{MaxJobsPerSecond: 0.3, Burst: 1, Quotas: quotas(config.Quota{Starts: 1, Window: time.Second})}, nil},

		{config.Worker{Lanes: weights, Order: "strict"},
			[]string{`the weights of [worker.lanes] have no effect with order = "strict": each lane has one job per turn`}},
		{config.Worker{Lanes: weights, PerLane: 1},
			[]string{"the weights of [worker.lanes] have no effect with max_jobs_per_second_per_lane: each lane has one job per turn"}},
		{config.Worker{Lanes: weights, PerLane: 1, Order: "strict"}, []string{`the weights of [worker.lanes] have no effect with ` +
			`order = "strict" and max_jobs_per_second_per_lane: each lane has one job per turn`}},
		{config.Worker{Lanes: map[string]int{"a": 1}, Order: "strict"}, nil},
		{config.Worker{Lanes: weights, Order: "due"}, nil},
		{config.Worker{Order: "strict", PerLane: 1}, nil},
	} {
		if got := withoutEffect(c.worker); !slices.Equal(got, c.want) {
			t.Errorf("%+v:\ngot  %q\nwant %q", c.worker, got, c.want)
		}
	}
}
