package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"queuekeeper/internal/procs"
	"queuekeeper/jobs"
)

// The names of the jobs: one calls the receiver, the other only writes down that it has started.
const (
	callName  = "Call"
	stampName = "Stamp"
)

// handlers are those of this binary when it runs as the program.
func handlers() jobs.Handlers {
	all := jobs.Handlers{}
	for _, queue := range allQueues() {
		all[queue] = map[string]jobs.Handler{callName: call, stampName: stamp}
	}
	return all
}

// args are those of a job that calls: where.
type args struct {
	URL string `json:"url"`
}

// call writes down that it has started, makes one request, and writes down what the answer was.
func call(ctx context.Context, job jobs.Job) error {
	if err := stamp(ctx, job); err != nil {
		return err
	}
	var a args
	if err := json.Unmarshal(job.Args, &a); err != nil {
		return err
	}
	status, after, err := get(ctx, fmt.Sprintf("%s/%s/%d", a.URL, job.Queue, job.ID))
	if err != nil {
		return err
	}
	if err := note(job.Queue, "answer %d %d %d", job.ID, procs.BootClock(), status); err != nil {
		return err
	}
	switch {
	case status == http.StatusTooManyRequests:
		return jobs.Throttled(after, fmt.Errorf("status %d", status))
	case status != http.StatusOK:
		return fmt.Errorf("status %d", status)
	}
	return nil
}

// stamp writes down when it started, by the one clock that all processes of the machine share.
func stamp(_ context.Context, job jobs.Job) error {
	return note(job.Queue, "start %d %d %s", job.ID, procs.BootClock(), job.Lane)
}

var client = http.Client{
	Timeout:   10 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 16}, // a new connection for each call would be part of the way
}

// get returns the status of the answer, and what Retry-After says.
func get(ctx context.Context, url string) (status int, after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // none: 0
	return answer.StatusCode, time.Duration(seconds) * time.Second, nil
}

// placeVariable tells a supervisor, and so its children, its place in the folder of the scene.
const placeVariable = "QUEUEKEEPER_RATES"

var (
	notesOnce sync.Once
	notesTo   *os.File
	errNotes  error
)

// note appends a line to the notes of the queue. It is one write, so that lines do not mix.
func note(queue, format string, args ...any) error {
	notesOnce.Do(func() { // a child serves one queue
		path := notesFile(filepath.Dir(os.Getenv(placeVariable)), queue)
		notesTo, errNotes = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	})
	if errNotes != nil {
		return errNotes
	}
	_, err := fmt.Fprintf(notesTo, format+"\n", args...)
	return err
}

func notesFile(folder, queue string) string { return filepath.Join(folder, "notes-"+queue) }
