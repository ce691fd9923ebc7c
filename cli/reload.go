package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"queuekeeper/config"
)

// reload reads the file again for a supervisor that runs with now. What it returns is sound, and its database answers:
// try finds that out if it is another one.
func (p *program) reload(ctx context.Context, now config.File, try func(context.Context, config.File) error) (config.File, error) {
	file, err := p.loadSettled(ctx)
	if err != nil {
		return config.File{}, err
	}
	if faults := p.startFaults(file); len(faults) > 0 {
		return config.File{}, faults
	}
	if file.DatabaseURL != now.DatabaseURL || file.Schema != now.Schema {
		if err := try(ctx, file); err != nil {
			text := strings.Join(strings.Fields(err.Error()), " ") // a line for each address that was tried
			return config.File{}, fmt.Errorf("%s: database_url or schema: tried in vain: %s", file.Path, text)
		}
	}
	return file, nil
}

// A file that is being written may be sound by chance, with half of its workers.
const (
	settling = 100 * time.Millisecond // between two looks that must find the same
	maxLooks = 50
)

// loadSettled reads the file until it finds the same twice, fault or not.
func (p *program) loadSettled(ctx context.Context) (config.File, error) {
	file, err := p.load()
	for range maxLooks {
		select {
		case <-ctx.Done():
			return config.File{}, ctx.Err()
		case <-time.After(settling):
		}
		again, errAgain := p.load()
		if reflect.DeepEqual(file, again) && reflect.DeepEqual(err, errAgain) {
			return file, err
		}
		file, err = again, errAgain
	}
	return config.File{}, fmt.Errorf("read %s: it changes all the time", p.configPath())
}
