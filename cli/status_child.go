package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"queuekeeper/jobs"
)

// heardOf is how old what a supervisor says of its children may be: it says it every minute.
const heardOf = 90 * time.Second

// workerText says who works on the queue and what is to be known of that. Why is in the remarks: a table is no place
// for long texts.
func workerText(q jobs.QueueStatus) string {
	words := []string{q.Holder}
	if q.Holder == "" {
		words[0] = "nobody"
	}
	c, fresh := q.Child, q.SeenAgo < heardOf
	if fresh && notable(c.State) && !silent(q) {
		words = append(words, c.State)
	}
	if fresh && c.LastExit != "" && c.Restarts > 0 && c.State != jobs.ChildEnded {
		words = append(words, plural(c.Restarts, "restart"))
	}
	if q.PausedFor > 0 {
		words = append(words, "paused")
	}
	return strings.Join(words, ", ")
}

// silent reports whether what was said of a child cannot be so any more: it had the queue, and nobody has it now, for
// longer than a supervisor takes to say so.
func silent(q jobs.QueueStatus) bool {
	had := q.Child.State == jobs.ChildReady || q.Child.State == jobs.ChildQuiet || q.Child.State == jobs.ChildLeaving
	return had && q.Child.PID != 0 && q.Holder == "" && q.SeenAgo > 5*time.Second
}

// notable reports whether a state says more than who holds the queue.
func notable(state string) bool {
	return state != "" && state != jobs.ChildReady && state != jobs.ChildEnded
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// remarks are what there is to say below the table.
func remarks(queues []jobs.QueueStatus) []string {
	var lines, reloads []string
	for _, q := range queues {
		for _, line := range append([]string{stateRemark(q)}, rateRemarks(q)...) {
			if line != "" {
				lines = append(lines, q.Queue+": "+line)
			}
		}
		fresh := q.SeenAgo < heardOf
		if c := q.Child; fresh && c.LastExit != "" && notableExit(c.State) {
			lines = append(lines, fmt.Sprintf("%s: last exit %s ago: %s", q.Queue, span(c.ExitAgo.Truncate(time.Second)), firstLine(c.LastExit)))
		}
		if fresh && q.FailedReload != "" && q.Child.State != jobs.ChildEnded {
			text := fmt.Sprintf("%s: reload failed, the file before still holds: %s", q.ChildHost, q.FailedReload)
			reloads = append(reloads, strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
	slices.Sort(reloads) // each queue of a supervisor says the same
	for _, text := range slices.Compact(reloads) {
		lines = append(lines, strings.Split(text, "\n")...)
	}
	if len(lines) > 0 {
		lines = slices.Insert(lines, 0, "")
	}
	return lines
}

// stateRemark is why a child is not just ready. What was said long ago is not told as a fact.
func stateRemark(q jobs.QueueStatus) string {
	c := q.Child
	if !notable(c.State) && !silent(q) {
		return ""
	}
	text := c.State
	if c.Detail != "" {
		text += ": " + oneLine(c.Detail)
	}
	switch {
	case q.SeenAgo >= heardOf || silent(q):
		return fmt.Sprintf("%s ago, when its supervisor was last heard of: %s", span(q.SeenAgo.Truncate(time.Second)), text)
	case c.Detail == "":
		return "" // the table has it
	}
	return text
}

// rateRemarks are why a queue starts less than it could.
func rateRemarks(q jobs.QueueStatus) (lines []string) {
	if q.PausedFor > 0 {
		lines = append(lines, "paused "+lasting(q.PausedFor, !q.PauseHasNoEnd)+because(oneLine(q.PauseReason)))
	}
	lines = append(lines, laneRemarks(q)...)
	return append(lines, unreachable(q.MeanDuration, allowed(q), q.Concurrency))
}

// laneRemarks are the first lanes that are paused, and how many more there are.
func laneRemarks(q jobs.QueueStatus) (lines []string) {
	const most = 3
	first := q.PausedLanes[:min(most, len(q.PausedLanes))]
	for _, l := range first {
		lines = append(lines, fmt.Sprintf("lane %q paused %s%s", l.Lane, lasting(l.For, l.For >= 0), because(oneLine(l.Reason))))
	}
	if more := int(q.LanesPaused) - len(first); more > 0 {
		lines = append(lines, "… and "+plural(more, "more lane"))
	}
	return lines
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// notableExit leaves out the exit that a parked child is parked for: the detail says more.
func notableExit(state string) bool { return state != jobs.ChildParked && state != jobs.ChildEnded }

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
