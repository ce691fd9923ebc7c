package main

import "time"

// kills is how often the child of each run is killed.
const kills = 20

// phases are all there are. No more than about 250 jobs per second are due at once.
var phases = []phase{
	{name: "steady", happens: "nothing", length: 90 * time.Second, brief: 10 * time.Second,
		aims: true, trials: []trial{
			{limit: pace(0.5, 1), concurrency: 1, to: 1},
			{limit: pace(0.5, 5), concurrency: 8, to: 1, gaps: true},
			{limit: pace(0.5, 1), concurrency: 1, to: 1, behindNginx: true},
			{limit: pace(10, 1), concurrency: 1, to: 1, short: true},
			{limit: pace(10, 5), concurrency: 8, to: 1, gaps: true, short: true},
			{limit: pace(10, 1), concurrency: 1, to: 1, behindNginx: true, short: true},
			{limit: quota(100), concurrency: 1, to: 1},
			{limit: quota(100), concurrency: 8, to: 1},
			{limit: pace(50, 1), concurrency: 1, to: 0.33},
			{limit: pace(50, 5), concurrency: 8, to: 0.33, gaps: true},
			{limit: pace(200, 1), concurrency: 8, from: 0.35, to: 0.65, short: true},
			{limit: pace(200, 5), concurrency: 1, from: 0.67, to: 1, gaps: true},
		}},
	{name: "kill", happens: "the child was killed", length: 90 * time.Second, brief: 10 * time.Second,
		kills: kills, faults: killing, trials: []trial{
			{limit: pace(0.5, 1), concurrency: 1, to: 1},
			{limit: pace(0.5, 5), concurrency: 8, to: 1, gaps: true},
			{limit: pace(10, 5), concurrency: 1, to: 1, gaps: true},
			{limit: pace(10, 1), concurrency: 8, to: 1, short: true},
			{limit: quota(100), concurrency: 1, to: 1},
			{limit: quota(100), concurrency: 8, to: 1},
			{limit: pace(50, 1), concurrency: 1, to: 0.5},
			{limit: pace(50, 5), concurrency: 8, to: 0.5, short: true},
			{limit: pace(200, 1), concurrency: 8, from: 0.5, to: 1},
		}},
	{name: "reload", happens: "the limit was changed", length: 40 * time.Second, brief: 8 * time.Second,
		faults: reloading, aims: true, trials: []trial{
			{limit: pace(0.5, 1), then: pace(1, 1), concurrency: 1, to: 1},
			{limit: pace(10, 5), then: pace(2, 5), concurrency: 8, to: 1, gaps: true, short: true},
			{limit: pace(10, 1), then: pace(50, 1), concurrency: 8, to: 1, short: true},
			{limit: pace(200, 5), then: pace(50, 5), concurrency: 8, to: 1},
			{limit: quota(100), then: quota(60), concurrency: 8, to: 1},
			{limit: quota(60), then: quota(100), concurrency: 1, to: 1},
		}},
	{name: "database", happens: "Postgres was restarted", length: 60 * time.Second, brief: 10 * time.Second,
		faults: restarting, trials: []trial{
			{limit: pace(0.5, 1), concurrency: 1, to: 1},
			{limit: pace(10, 5), concurrency: 8, to: 1, gaps: true, short: true},
			{limit: quota(100), concurrency: 8, to: 1},
			{limit: pace(50, 5), concurrency: 1, to: 0.5},
			{limit: pace(50, 1), concurrency: 8, to: 0.5, short: true},
			{limit: pace(200, 1), concurrency: 8, from: 0.5, to: 1},
		}},
	{name: "takeover", happens: "another supervisor took over", length: 60 * time.Second, brief: 10 * time.Second,
		faults: takingOver, trials: []trial{
			{limit: pace(0.5, 1), concurrency: 8, to: 1},
			{limit: pace(10, 5), concurrency: 8, to: 1, gaps: true, short: true},
			{limit: pace(10, 1), concurrency: 1, to: 1},
			{limit: quota(100), concurrency: 8, to: 1},
			{limit: pace(50, 5), concurrency: 8, to: 0.5, short: true},
			{limit: pace(200, 1), concurrency: 8, from: 0.5, to: 1},
		}},
}
