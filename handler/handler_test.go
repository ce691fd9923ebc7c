package handler

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

var errGo = errors.New("the Go handler ran")

func goHandler(context.Context, jobs.Job) error { return errGo }

// says is a command that fails with the word on its standard error.
func says(word string) []string { return []string{"/bin/sh", "-c", "echo " + word + " >&2; exit 1"} }

func TestTheMoreSpecificHandlerRuns(t *testing.T) {
	own := jobs.Handlers{"github": {"Go": goHandler, "Both": goHandler}, "slack": {"Other": goHandler}}
	byName := map[string]config.Job{"Both": {Command: says("by-name")}, "Slow": {MaxAttempts: 3}}
	for _, c := range []struct {
		about   string
		command []string
		accepts []string
		name    string
		want    string
	}{
		{"Go handler before the worker's command", says("worker"), nil, "Go", "the Go handler ran"},
		{"command of the name before the Go handler", says("worker"), nil, "Both", "exit status 1: by-name"},
		{"worker's command for any other name", says("worker"), nil, "Other", "exit status 1: worker"},
		{"name that only has a setting", says("worker"), nil, "Slow", "exit status 1: worker"},
		{"name not accepted", says("worker"), []string{"Go", "Mail"}, "Both", `unknown job name "Both": queue github knows Go, Mail`},
		{"name of another queue's handler", nil, nil, "Other", `unknown job name "Other": queue github knows Both, Go`},
		{"accepted but nothing does it", nil, []string{"Go", "Mail"}, "Mail", `unknown job name "Mail": queue github knows Go`},
		{"name with a line break", nil, nil, "x\ny", `unknown job name "x\ny": queue github knows Both, Go`},
	} {
		t.Run(c.about, func(t *testing.T) {
			worker := config.Worker{Queue: "github", Command: c.command, Jobs: c.accepts, Job: byName}
			set, err := New(worker, own, hclog.NewNullLogger())
			if err != nil {
				t.Fatalf("New: got %v, want nil", err)
			}
			h, err := set.Find(c.name)
			if err == nil {
				err = outcomeOf(context.Background(), h, jobs.Job{ID: 1, Queue: "github", Name: c.name})
			}
			if err == nil || err.Error() != c.want {
				t.Errorf("job %s: got %v, want %s", c.name, err, c.want)
			}
		})
	}
}

func TestWorkerWithNothingToDoItsJobsIsRefused(t *testing.T) {
	slack := jobs.Handlers{"slack": {"Post": goHandler}}
	for about, worker := range map[string]config.Worker{
		"nothing at all":               {Queue: "github"},
		"a setting by name":            {Queue: "github", Job: map[string]config.Job{"Sync": {MaxAttempts: 3}}},
		"accepts what nothing handles": {Queue: "slack", Jobs: []string{"Fetch"}},
	} {
		if _, err := New(worker, slack, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), worker.Queue) {
			t.Errorf("%s: got %v, want an error that names queue %s", about, err, worker.Queue)
		}
	}
}
