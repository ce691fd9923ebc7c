package steward

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

// showDue is when the picture is to be stored: soon if it is new, and in a while if it is not, since its age tells
// who is alive.
func (v *visit) showDue() time.Time {
	if v.stored != v.now().shows {
		return v.calmTill
	}
	return v.showAt
}

// show stores the newest picture. A row that was locked gets its part the next time.
func (v *visit) show(ctx context.Context) error {
	given, now := v.now(), time.Now()
	v.calmTill, v.showAt = now.Add(v.times.Sweep/60), now.Add(v.times.Sweep)
	if given.shows == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	complete, err := v.schema.StorePicture(ctx, v.conn, aged(given.picture, now.Sub(given.shown)), v.times.Sweep/2)
	if err != nil {
		return err
	}
	v.stored = 0
	if complete {
		v.stored = given.shows
	}
	return nil
}

// aged is a picture some time after it was taken.
func aged(p jobs.Picture, by time.Duration) jobs.Picture {
	p.Children = slices.Clone(p.Children)
	for i := range p.Children {
		p.Children[i].ExitAgo += by
	}
	return p
}

// look warns of queues that have due jobs and no worker, once for as long as they have.
func (v *visit) look(ctx context.Context, file config.File) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var served []string
	for _, w := range file.Workers {
		served = append(served, w.Queue)
	}
	waiting, err := v.schema.Unserved(ctx, v.conn, served)
	if err != nil {
		return err
	}
	for _, queue := range slices.Sorted(maps.Keys(waiting)) {
		if _, known := v.warned[queue]; !known {
			v.log.Warn("queue has waiting jobs and no worker", "queue", queue, "waiting", counted(waiting[queue]), "file", file.Path)
		}
	}
	v.warned = waiting
	return nil
}

func counted(n int64) any {
	if n > jobs.CountedMost {
		return strconv.Itoa(jobs.CountedMost) + "+"
	}
	return n
}
