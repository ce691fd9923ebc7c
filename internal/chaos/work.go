package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"queuekeeper/jobs"
)

// What jobs are called, and how each ends if nobody interferes.
const (
	workName   = "Work"
	failName   = "FailFirst" // its first attempt fails
	refuseName = "Refuse"    // cannot be done: dead
)

// workArgument makes this program the command of a job.
const workArgument = "work"

// args are those of every job.
type args struct {
	MS    int `json:"ms"`    // how long it takes
	Slots int `json:"slots"` // how many of its queue may run at the same time
	Batch int `json:"batch"` // with which it was enqueued
}

// handlers are those of this binary when it runs as the program.
func handlers() jobs.Handlers {
	all := jobs.Handlers{}
	for _, q := range queues {
		if !q.command {
			all[q.name] = map[string]jobs.Handler{workName: work, failName: work, refuseName: work}
		}
	}
	return all
}

// command does a job as the command of a queue does, and returns the exit status.
func command() int {
	id, _ := strconv.ParseInt(os.Getenv("JOB_ID"), 10, 64)
	attempt, _ := strconv.Atoi(os.Getenv("JOB_ATTEMPT"))
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = work(context.Background(), jobs.Job{
			ID: id, Attempt: attempt, Queue: os.Getenv("JOB_QUEUE"), Name: os.Getenv("JOB_NAME"), Args: text,
		})
	}
	switch {
	case err == nil:
		return 0
	case jobs.IsPermanent(err):
		return 65
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// work does a job and marks what becomes of it. It holds one of its queue's slots meanwhile: a lock that ends with
// the process, however that ends.
func work(ctx context.Context, job jobs.Job) error {
	m := marker{job: job}
	if err := m.mark(startMark); err != nil {
		return err
	}
	var a args
	if err := json.Unmarshal(job.Args, &a); err != nil {
		return err
	}
	slot, err := takeSlot(job.Queue, a.Slots)
	if err != nil {
		return err
	}
	if slot == nil {
		if err := m.mark(crowdMark); err != nil {
			return err
		}
	} else {
		defer slot.Close()
	}
	select {
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), m.mark(cutMark))
	case <-time.After(time.Duration(a.MS) * time.Millisecond):
	}
	return m.end()
}

// end is how a job ends that was let to.
func (m marker) end() error {
	switch {
	case m.job.Name == refuseName:
		return errors.Join(m.mark(refuseMark), jobs.Permanent(errors.New("this job cannot be done")))
	case m.job.Name == failName && m.job.Attempt == 1:
		return errors.Join(m.mark(failMark), errors.New("the first attempt fails"))
	}
	return m.mark(doneMark)
}

// takeSlot returns one of the queue's slots; nil: all are taken.
func takeSlot(queue string, slots int) (*os.File, error) {
	for n := range slots {
		slot, err := os.OpenFile(filepath.Join(roundFolder(), fmt.Sprintf("slot-%s-%d", queue, n)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		if err = syscall.Flock(int(slot.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return slot, nil
		}
		_ = slot.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, err
		}
	}
	return nil, nil
}
