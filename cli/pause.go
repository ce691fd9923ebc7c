package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
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
			"process honours it at once, and after a restart. A pause never shortens another: of two the one that ends later holds;\n" +
			"if it has no reason, that of the other stays. A queue that has no job, never had a worker and has none in the file is\n" +
			"not paused. In --json paused_for is in seconds, null if the pause does not end by itself.",
		Example: "  queuekeeper pause github --for 1h --reason \"maintenance at GitHub\"\n  queuekeeper pause slack --lane C042",
		Args:    takes(1, `one QUEUE; a reason goes behind --reason, in quotes, as in --reason "maintenance at GitHub"`),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLane(cmd); err != nil {
				return err
			}
			var d time.Duration // without end
			if cmd.Flags().Changed("for") {
				var err error
				if d, err = parseFor(howLong); err != nil {
					return err
				}
			}
			return p.pause(cmd.Context(), args[0], lane, d, reason)
		},
	})
	cmd.Flags().StringVar(&lane, "lane", "", "only this `LANE` of the queue")
	cmd.Flags().StringVar(&howLong, "for", "", "for this `DURATION`: 30s, 5m, 7d, up to 31d (default: until it is resumed)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks: `TEXT` of at most 1,000 bytes")
	return cmd
}

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
	now, err := db.pauseKnown(ctx, queue, lane, howLong, reason)
	if err != nil {
		return err
	}
	if now.Kept {
		p.lines("", "nothing changed: this pause was there and ends no earlier; to shorten it, resume first")
	} else if len(reason) > jobs.MaxReason {
		p.lines("warning: ", fmt.Sprintf("--reason: has %d bytes and is cut to %d", len(reason), jobs.MaxReason))
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
		howLongNow = fmt.Sprintf("for %s, until %s", span(now.For.Round(time.Second)), now.Until)
	}
	_, err = fmt.Fprintln(p.stdout, shown(fmt.Sprintf("%s: paused %s%s", whatOf(queue, lane), howLongNow, because(now.Reason))))
	return err
}

// pauseKnown pauses a queue unless it exists nowhere but in what was typed: who types it wrong must not think that the
// queue is paused. One that is in the file may be paused before its first start.
func (db *database) pauseKnown(ctx context.Context, queue, lane string, howLong time.Duration, reason string) (now jobs.Paused, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		now, err = db.schema.Pause(ctx, tx, queue, lane, howLong, reason)
		if why := db.unknown(queue); err == nil && now.Unknown && why != "" {
			err = fmt.Errorf("pause: %s: nothing is paused; check its name (queuekeeper status shows all there are), the file (-c) and the database", why)
		}
		return err
	})
	return now, err
}

func resumeCommand(p *program) *cobra.Command {
	var lane string
	cmd := p.printsData(&cobra.Command{
		Use:   "resume QUEUE",
		Short: "End the pause of a queue and its lanes, or of one lane",
		Long: "End the pause of a queue and those of all its lanes, or only that of one lane. What is not paused stays as it is, and\n" +
			"the exit status is 0. A pause that came from an API's refusal is lifted too: the API may still refuse.",
		Example: "  queuekeeper resume github\n  queuekeeper resume slack --lane C042",
		Args:    takes(1, "one QUEUE; a lane goes behind --lane"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLane(cmd); err != nil {
				return err
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
	if why := db.unknown(queue); r.Unknown && why != "" {
		p.lines("warning: ", why)
	}
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

// unknown says what a queue is that the database does not know, or "" if it is in the file.
func (db *database) unknown(queue string) string {
	if _, served := db.worker(queue); served {
		return ""
	}
	text := fmt.Sprintf("queue %s has no job and never had a worker", queue)
	if len(db.workers) == 0 {
		return text + ", and no file was read"
	}
	return text + ", and has none in the file"
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
	return fmt.Sprintf("for %s more", span(max(d.Round(time.Second), time.Second)))
}

// span is a duration with its days: "30d", "1d2h0m0s".
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch days, rest := d/day, d%day; {
	case days == 0:
		return rest.String()
	case rest == 0:
		return fmt.Sprintf("%dd", days)
	default:
		return fmt.Sprintf("%dd%s", days, rest)
	}
}

// because is what stands behind a pause that has a reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
