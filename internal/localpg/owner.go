package localpg

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that Postgres runs as, when that is not the user of this process: Postgres refuses root.
type owner struct {
	name     string
	uid, gid int
}

// serverOwner returns nil for an ordinary user: Postgres runs as that one.
func serverOwner() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.Atoi(u.Uid)
		gid, errG := strconv.Atoi(u.Gid)
		if errU == nil && errG == nil {
			return &owner{name, uid, gid}, nil
		}
	}
	return nil, errors.New("find a user to run Postgres as, which refuses root: this machine has neither postgres nor nobody")
}

// attributes start a process as the owner, in a session of its own: Ctrl-C in the terminal is for queuekeeper,
// which then ends Postgres in order.
func (o *owner) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if o != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
	return attr
}

// take hands a file or folder of ours to the owner.
func (o *owner) take(path string) error {
	if o == nil {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

// canReach tells whether every folder above path lets the owner pass: a folder in /root would not.
func (o *owner) canReach(path string) error {
	if o == nil {
		return nil
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("user %s, which Postgres runs as for root, cannot reach %s: %s is closed to other users; "+
				"choose a folder elsewhere", o.name, path, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
