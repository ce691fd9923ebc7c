package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// figure is one number of one round.
type figure struct {
	what     string // its name in the table
	unit     string // with its space, if it has one
	measured float64
	limit    float64 // what it is compared with, in the same unit; 0: nothing
	aim      aim
	worst    bool // the largest of the rounds counts, not the median
}

// aim is what a figure should be. The zero aim is none.
type aim struct {
	text    string
	reached func(measured, ratio float64) bool
}

var zero = aim{"0", func(measured, _ float64) bool { return measured == 0 }}

func below(most float64) aim {
	return aim{fmt.Sprintf("< %g", most), func(measured, _ float64) bool { return measured < most }}
}

func ratioBelow(most float64) aim {
	return aim{fmt.Sprintf("ratio < %g", most), func(_, ratio float64) bool { return ratio < most }}
}

func ratioAtLeast(least float64) aim {
	return aim{fmt.Sprintf("ratio >= %g", least), func(_, ratio float64) bool { return ratio >= least }}
}

// table collects the figures of all rounds.
type table struct{ lines []*line }

// line is a figure over all rounds. A ratio is of two numbers of one round, so its median is not the ratio of the
// medians.
type line struct {
	figure                   // of the first round: what is the same in all
	measured, limits, ratios []float64
}

func (t *table) add(figures []figure) {
	for _, f := range figures {
		l := t.line(f.what)
		if l == nil {
			l = &line{figure: f}
			t.lines = append(t.lines, l)
		}
		l.measured = append(l.measured, f.measured)
		if f.limit > 0 {
			l.limits = append(l.limits, f.limit)
			l.ratios = append(l.ratios, f.measured/f.limit)
		}
	}
}

// line returns the line with that name, or nil.
func (t *table) line(what string) *line {
	i := slices.IndexFunc(t.lines, func(l *line) bool { return l.what == what })
	if i < 0 {
		return nil
	}
	return t.lines[i]
}

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "measured\tlimit\tratio\taim\treached\t")
	for _, l := range t.lines {
		fmt.Fprintln(w, l.text())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if l := t.line(serialWhat); l != nil {
		_, err := fmt.Fprintf(out, "serial ratio %.2f\n", median(l.ratios))
		return err
	}
	return nil
}

func (l *line) text() string {
	measured, ratio := median(l.measured), median(l.ratios)
	if l.worst {
		measured = slices.Max(l.measured)
	}
	limit, times, reached := "", "", ""
	if len(l.limits) > 0 {
		limit, times = number(median(l.limits))+l.unit, fmt.Sprintf("%.3f", ratio)
	}
	if l.aim.reached != nil {
		reached = "no"
		if l.aim.reached(measured, ratio) {
			reached = "yes"
		}
	}
	return fmt.Sprintf("%s%s\t%s\t%s\t%s\t%s\t  %s", number(measured), l.unit, limit, times, l.aim.text, reached, l.what)
}

// number shows three digits; of a large number all before the point, of a whole one no more than those.
func number(x float64) string {
	switch {
	case x >= 100 || x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// median is, of an even number of values, the upper of the two in the middle; of none it is 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
