package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// socketName is what Postgres calls its socket for the port that is in every URL.
const socketName = ".s.PGSQL.5432"

// socketMax is the longest path of a socket: 104 bytes on macOS, 108 on Linux, each with a zero byte at its end.
const socketMax = 103

// lockName is the file in a cluster's folder that is locked while the cluster is in use. It holds the id of
// the process that uses it, and marks the folder as ours.
const lockName = "owner"

// folder is the folder of a cluster: data, log, socket and lock. Its mode lets in the owner and root alone, and
// that is all that guards the socket: whoever reaches it is superuser.
type folder struct {
	path  string
	temp  bool
	lock  *os.File // shared with the guard and Postgres
	probe *os.File // opened by us alone: it can be locked once they are gone
}

func openFolder(ctx context.Context, dir string, who *owner) (*folder, error) {
	if dir == "" {
		return makeTemporary(ctx, who)
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if length := len(filepath.Join(path, socketName)); length > socketMax {
		return nil, fmt.Errorf("use folder %s: a socket in it would have a path of %d bytes, and %d is the limit; choose a shorter one",
			path, length, socketMax)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	f := &folder{path: path}
	return f, f.adopt(ctx, who)
}

func makeTemporary(ctx context.Context, who *owner) (*folder, error) {
	path, err := os.MkdirTemp(temporaryBase(who), "queuekeeper-pg-")
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, temp: true}
	if err := f.adopt(ctx, who); err != nil {
		os.RemoveAll(path)
		return nil, err
	}
	return f, nil
}

// temporaryBase is TMPDIR unless the server's user cannot reach it or a socket in it would have too long a path.
func temporaryBase(who *owner) string {
	base := os.TempDir()
	sample := filepath.Join(base, "queuekeeper-pg-1234567890", socketName)
	if len(sample) > socketMax || who.canReach(filepath.Join(base, "x")) != nil {
		return "/tmp"
	}
	return base
}

// adopt checks that the folder can be a cluster's, locks it and gives it to the owner. A folder with other
// things in it is refused: its mode and owner are about to change.
func (f *folder) adopt(ctx context.Context, who *owner) error {
	if err := who.canReach(f.path); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	_, err = os.Lstat(f.file(lockName))
	if len(entries) > 0 && err != nil {
		return fmt.Errorf("use folder %s: it holds other things; choose one that is empty or does not exist", f.path)
	}
	if err := f.acquire(ctx); err != nil {
		return fmt.Errorf("use folder %s: %w", f.path, err)
	}
	if err := errors.Join(os.Chmod(f.path, 0o700), who.take(f.path)); err != nil {
		f.lock.Close()
		f.probe.Close()
		return err
	}
	return nil
}

// acquire locks the folder. It fails at once while the process that uses it lives. When that is gone its guard
// is still ending Postgres, and that is worth waiting for.
func (f *folder) acquire(ctx context.Context) (err error) {
	if f.lock, err = os.OpenFile(f.file(lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.lock.Close()
		}
	}()
	err = lock(ctx, f.lock, func() error {
		if pid, alive := writer(f.lock); alive {
			return fmt.Errorf("process %d is using it: stop that one, or choose another folder", pid)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := f.lock.Truncate(0); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f.lock, os.Getpid()); err != nil {
		return err
	}
	f.probe, err = os.Open(f.file(lockName))
	return err
}

// lock waits until nobody else holds the lock of file, or busy has an objection.
func lock(ctx context.Context, file *os.File, busy func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if err := busy(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for Postgres in it to end: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// writer tells which process locked the file last, and whether it lives.
func writer(file *os.File) (pid int, alive bool) {
	text := make([]byte, 32)
	n, _ := file.ReadAt(text, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return 0, false
	}
	err = syscall.Kill(pid, 0)
	return pid, err == nil || errors.Is(err, syscall.EPERM)
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// write makes a file that the owner can read, and only it.
func (f *folder) write(name, text string, who *owner) error {
	if err := os.WriteFile(f.file(name), []byte(text), 0o600); err != nil {
		return err
	}
	return who.take(f.file(name))
}

// close waits until Postgres is gone, which is a moment after pg_ctl says so. It removes what the guard of a
// temporary cluster may not remove: the folder itself, where only root may write above it.
func (f *folder) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f.lock.Close()
	err := lock(ctx, f.probe, func() error { return nil })
	f.probe.Close()
	if f.temp {
		err = errors.Join(err, os.RemoveAll(f.path))
	}
	return err
}
