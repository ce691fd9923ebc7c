package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

// maxPause is the longest pause that ends by itself.
const maxPause = 31 * 24 * time.Hour

func pauseCommand(p *program) *cobra.Command {
	var lane, howLong, reason string
	cmd := p.printsData(&cobra.Command{
		Use:   "pause QUEUE",
		Short: "Let a queue, or a lane of it, start nothing for a while",
		Long: "Let a queue, or a lane of it, start nothing for a while, or until it is resumed. Jobs that run are left alone. Every\n" +
			"process honours it at once, and after a restart. A pause never shortens another: of two the one that ends later holds.\n" +
			"In --json paused_for is in seconds, null if the pause does not end by itself.",
		Example: "  queuekeeper pause github --for 1h --reason \"maintenance at GitHub\"\n  queuekeeper pause slack --lane C042",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if given("lane") && lane == "" {
				return errNoLane
			}
			var d time.Duration // without end
			if given("for") {
				var err error
				if d, err = parseFor(howLong); err != nil {
					return err
				}
			}
			return p.pause(cmd.Context(), args[0], lane, d, reason)
		},
	})
	cmd.Flags().StringVar(&lane, "lane", "", "only this `LANE` of the queue")
	cmd.Flags().StringVar(&howLong, "for", "", "for this `DURATION`: 30s, 5m, 7d (default: until it is resumed)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks: `TEXT`")
	return cmd
}

var errNoLane = usage("--lane: must not be empty; leave it out for the whole queue")

func parseFor(text string) (time.Duration, error) {
	d, err := config.ParseDuration(text)
	if err != nil || d <= 0 || d > maxPause {
		return 0, usage(fmt.Sprintf(`--for %q: must be a duration above 0 and up to 31d, like "30s", "5m", "1h30m" or "7d"; `+
			`leave it out to pause until resumed`, text))
	}
	return d, nil
}

// pausedJSON is a pause in --json.
type pausedJSON struct {
	PausedFor   *float64 `json:"paused_for"`   // seconds; null: no pause, or until it is resumed
	PausedUntil string   `json:"paused_until"` // "infinity": until it is resumed; "": no pause
	Reason      string   `json:"reason"`
}

func jsonOf(p jobs.Pause) pausedJSON {
	return pausedJSON{secondsIf(p.Holds() && p.HasEnd(), p.For), p.Until, p.Reason}
}

func (p *program) pause(ctx context.Context, queue, lane string, howLong time.Duration, reason string) error {
	db, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	now, err := db.schema.Pause(ctx, db, queue, lane, howLong, reason)
	if err != nil {
		return err
	}
	p.warnUnknown(db, queue, now.Unknown)
	if now.Kept {
		p.lines("", "nothing changed: this pause was there and ends no earlier; to shorten it, resume first")
	}
	if p.json {
		return printJSON(p.stdout, struct {
			Queue string `json:"queue"`
			Lane  string `json:"lane"` // "": the queue
			pausedJSON
			Changed bool `json:"changed"`
		}{queue, lane, jsonOf(now.Pause), !now.Kept})
	}
	howLongNow := "until resumed"
	if now.HasEnd() {
		howLongNow = fmt.Sprintf("for %s, until %s", now.For.Round(time.Second), now.Until)
	}
	_, err = fmt.Fprintln(p.stdout, shown(fmt.Sprintf("%s: paused %s%s", whatOf(queue, lane), howLongNow, because(now.Reason))))
	return err
}

func resumeCommand(p *program) *cobra.Command {
	var lane string
	cmd := p.printsData(&cobra.Command{
		Use:   "resume QUEUE",
		Short: "End the pause of a queue and its lanes, or of one lane",
		Long: "End the pause of a queue and those of all its lanes, or only that of one lane. What is not paused stays as it is, and\n" +
			"the exit status is 0. A pause that came from an API's refusal is lifted too: the API may still refuse.",
		Example: "  queuekeeper resume github\n  queuekeeper resume slack --lane C042",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("lane") && lane == "" {
				return errNoLane
			}
			return p.resume(cmd.Context(), args[0], lane)
		},
	})
	cmd.Flags().StringVar(&lane, "lane", "", "only this `LANE` of the queue")
	return cmd
}

func (p *program) resume(ctx context.Context, queue, lane string) error {
	db, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	r, err := db.schema.Resume(ctx, db, queue, lane)
	if err != nil {
		return err
	}
	p.warnUnknown(db, queue, r.Unknown)
	if r.Still.Holds() {
		p.lines("", fmt.Sprintf("queue %s is still paused %s%s", queue, lasting(r.Still.For, r.Still.HasEnd()), because(r.Still.Reason)))
	}
	if p.json {
		return printJSON(p.stdout, struct {
			Queue   string     `json:"queue"`
			Lane    string     `json:"lane"` // "": the queue
			Resumed bool       `json:"resumed"`
			Was     pausedJSON `json:"was"`
			Lanes   int        `json:"lanes"` // so many lanes go on too
		}{queue, lane, r.Was.Holds() || r.Lanes > 0, jsonOf(r.Was), r.Lanes})
	}
	for _, line := range resumedText(queue, lane, r) {
		if _, err := fmt.Fprintln(p.stdout, shown(line)); err != nil {
			return err
		}
	}
	return nil
}

func resumedText(queue, lane string, r jobs.Resumed) (lines []string) {
	what := whatOf(queue, lane)
	if r.Was.Holds() {
		lines = append(lines, fmt.Sprintf("%s: resumed; it was paused %s%s", what, lasting(r.Was.For, r.Was.HasEnd()), because(r.Was.Reason)))
	}
	if r.Lanes > 0 {
		lines = append(lines, fmt.Sprintf("%s: %s resumed", what, plural(r.Lanes, "lane")))
	}
	if lines == nil {
		lines = []string{what + ": was not paused"}
	}
	return lines
}

// warnUnknown tells of a queue that exists nowhere but in what was typed.
func (p *program) warnUnknown(db *database, queue string, unknown bool) {
	if _, served := db.worker(queue); !unknown || served {
		return
	}
	text := fmt.Sprintf("queue %s has no job and never had a worker", queue)
	if len(db.workers) > 0 {
		text += ", and has none in the file"
	}
	p.lines("warning: ", text)
}

func whatOf(queue, lane string) string {
	if lane == "" {
		return "queue " + queue
	}
	return fmt.Sprintf("lane %q of queue %s", lane, queue)
}

// lasting is how long a pause lasts from now.
func lasting(d time.Duration, ends bool) string {
	if !ends {
		return "until resumed"
	}
	return fmt.Sprintf("for %s more", max(d.Round(time.Second), time.Second))
}

// because is what stands behind a pause that has a reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
