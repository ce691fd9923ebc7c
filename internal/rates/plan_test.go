package main

import (
	"path/filepath"
	"testing"
	"time"

	"queuekeeper/config"
)

func TestPhasesTogetherAreDueAtNoMoreThanTheMachineCanDo(t *testing.T) {
	all, _ := chosen(false, true)
	var sum time.Duration
	for _, p := range all {
		sum += p.length
		for _, moment := range []float64{0.01, 0.2, 0.4, 0.6, 0.8, 0.99} {
			perSecond := 0.0
			for _, t := range p.trials {
				if t.from <= moment && moment < t.to {
					perSecond += t.limit.perSecond
				}
			}
			if perSecond > 260 {
				t.Errorf("phase %s, at %g of it: got %g jobs per second due, want about 250 at most", p.name, moment, perSecond)
			}
		}
	}
	if sum > 6*time.Minute {
		t.Errorf("phases take %s, want at most 6m: the other parts and the starts come on top", sum)
	}
}

func TestEveryLimitIsShownTwiceInPeaceAndAtEachConcurrency(t *testing.T) {
	all, _ := chosen(false, true)
	seen := map[float64]map[int]int{}
	for _, t := range all[0].trials {
		if seen[t.limit.perSecond] == nil {
			seen[t.limit.perSecond] = map[int]int{}
		}
		seen[t.limit.perSecond][t.concurrency]++
	}
	for _, perSecond := range []float64{0.5, 10, 50, 200} {
		for _, concurrency := range []int{1, 8} {
			if got := seen[perSecond][concurrency]; got == 0 {
				t.Errorf("%g/s at concurrency %d: got no trial, want one", perSecond, concurrency)
			}
		}
	}
}

func TestEachQueueIsThereOnceAndNginxIsLeftOutByName(t *testing.T) {
	queues := map[string]bool{}
	for _, q := range allQueues() {
		if queues[q] {
			t.Errorf("queue %s: got two, want one", q)
		}
		queues[q] = true
	}
	if _, left := chosen(false, false); len(left) != len(nginxLimits) {
		t.Errorf("left out without nginx: got %q, want %d", left, len(nginxLimits))
	}
}

func TestWavesLeaveTimeForTheBucketToFill(t *testing.T) {
	for _, l := range []limit{pace(0.5, 5), pace(10, 5), pace(50, 5), pace(200, 5)} {
		period, jobs := l.waves()
		busy, fill := float64(jobs-l.burst)/l.perSecond, float64(l.burst)/l.perSecond
		if period.Seconds() < busy+fill || period.Seconds() > busy+fill+1.2 {
			t.Errorf("%s: got %d jobs every %s, want time for %g s of work and %g s to fill, and little more", l, jobs, period, busy, fill)
		}
	}
	reload := trial{limit: pace(10, 5), then: pace(2, 5), gaps: true, to: 1}
	waves := reload.waves(40 * time.Second)
	if got := waves[len(waves)/2].at; got != 20*time.Second {
		t.Errorf("waves %v: got the middle one at %s, want one at the reload, 20s", waves, got)
	}
}

func TestFileIsOneTheProgramTakes(t *testing.T) {
	s := scene{folder: t.TempDir(), changes: map[string]int{"lanes": 3}, workers: []worker{
		{queue: "pace", concurrency: 8, limits: pace(0.5, 5).toml()},
		{queue: "quota", concurrency: 1, limits: quota(100).toml()},
		{queue: "lanes", concurrency: 1, limits: "max_jobs_per_second_per_lane = 1\n", after: "[worker.lanes]\nfive = 5\n"},
	}}
	if err := s.writeFile(); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(filepath.Join(s.folder, "queues.toml"), func(string) (string, bool) { return "postgres://host/db", true })
	if err != nil {
		t.Fatal(err)
	}
	w := file.Workers
	if w[0].MaxJobsPerSecond != 0.5 || w[0].Burst != 5 || w[0].Concurrency != 8 || file.Lease != lease {
		t.Errorf("pace: got %+v and lease %s, want 0.5/s, burst 5, concurrency 8 and %s", w[0], file.Lease, lease)
	}
	if len(w[1].Quotas) != 1 || w[1].Quotas[0] != (config.Quota{Starts: 100, Window: quotaWindow}) {
		t.Errorf("quota: got %+v, want 100 in %s", w[1].Quotas, quotaWindow)
	}
	if w[2].PerLane != 1 || w[2].Lanes["five"] != 5 || w[2].Timeout != 63*time.Second {
		t.Errorf("lanes: got %+v, want 1 per lane, weight 5 and the changed timeout", w[2])
	}
}

func TestNginxHasAServerForEachLimit(t *testing.T) {
	if findNginx() == "" {
		t.Skip("nginx is not installed; make deps installs it")
	}
	n, err := startNginx(t.Context(), t.TempDir(), "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.end(); err != nil {
		t.Error(err)
	}
}
