// Package tryout is what the programs share that try the real thing: bench, rates and chaos.
package tryout

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// Machine says what is measured on, and when.
func Machine(ctx context.Context, db *pgx.Conn) (string, error) {
	var postgres string
	if err := db.QueryRow(ctx, `select current_setting('server_version')`).Scan(&postgres); err != nil {
		return "", err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("read the kernel's name: %w", err)
	}
	return fmt.Sprintf("%s: %d cores, %s %s %s, Postgres %s with default durability, %s",
		time.Now().Format("2006-01-02 15:04"), runtime.NumCPU(), unix.ByteSliceToString(u.Sysname[:]),
		unix.ByteSliceToString(u.Release[:]), runtime.GOARCH, postgres, runtime.Version()), nil
}

// Part is something that can be tried by itself.
type Part[F any] struct {
	Name string
	Do   F
}

// Parts are all there are.
type Parts[F any] []Part[F]

// Names lists them, with commas.
func (p Parts[F]) Names() string {
	names := make([]string, len(p))
	for i, part := range p {
		names[i] = part.Name
	}
	return strings.Join(names, ",")
}

// Choose returns the parts that a list like "a,b" names, in the order of the list; "" names all.
func (p Parts[F]) Choose(list string) (chosen Parts[F], err error) {
	if list == "" {
		return p, nil
	}
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(p, func(part Part[F]) bool { return part.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no part is called %q: there are %s", name, p.Names())
		}
		chosen = append(chosen, p[i])
	}
	return chosen, nil
}

// Tail returns the last n lines of a file, or why it cannot be read.
func Tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte{'\n'})
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte{'\n'}))
}

// Pause waits for a moment, and reports whether ctx lets us go on.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
