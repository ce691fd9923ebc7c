package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"queuekeeper/config"
)

// childEnv is env for the child of w, one of all. It is without the names that other workers have to themselves, and
// without what the process manager said to the supervisor alone: a child that answered to it would speak for the whole.
func childEnv(env []string, w config.Worker, all []config.Worker) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		theirs := slices.ContainsFunc(all, func(other config.Worker) bool { return slices.Contains(other.Env, name) })
		return theirs && !slices.Contains(w.Env, name) ||
			name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "WATCHDOG_") || strings.HasPrefix(name, "LISTEN_")
	})
}

// users are the users that the workers of a file name. Who they are is looked for outside of the loop, for a program
// that is built with cgo may ask a server for it: with the file, at the start and at each reload.
type users map[string]found

// found is what came of looking for a user.
type found struct {
	who Identity
	err error
}

func lookUp(workers []config.Worker) users {
	all := users{}
	for _, w := range workers {
		if _, known := all[w.User]; !known && w.User != "" {
			who, err := Identify(w.User)
			all[w.User] = found{who, err}
		}
	}
	return all
}

// runAs has cmd, which is not started yet, run as a user, with the user's groups and HOME.
func runAs(cmd *exec.Cmd, user found) error {
	who := user.who
	if user.err != nil {
		return fmt.Errorf("%w; it is looked for again at the next hangup", user.err)
	}
	if who.Name == "" {
		return nil // nobody else
	}
	cmd.Env = append(cmd.Env, "HOME="+who.Home, "USER="+who.Name, "LOGNAME="+who.Name) // of two entries the later holds
	if int(who.UID) == os.Geteuid() {
		return nil // setting groups, even to what they are, takes a right that only root has
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.UID, Gid: who.GID, Groups: who.Groups}
	return nil
}

// Identity is a user of this machine.
type Identity struct {
	Name, Home string
	UID, GID   uint32
	Groups     []uint32 // all of them
}

// Identify looks for the user of that name or, if there is none and it is a number, of that number.
func Identify(name string) (Identity, error) {
	found, err := user.Lookup(name)
	if _, numeric := strconv.ParseUint(name, 10, 32); err != nil && numeric == nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("look for user %s: %w", name, err)
	}
	groups, err := found.GroupIds()
	if err != nil {
		return Identity{}, fmt.Errorf("look for groups of user %s: %w", name, err)
	}
	ids := make([]uint32, 0, 2+len(groups))
	for _, text := range append([]string{found.Uid, found.Gid}, groups...) {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return Identity{}, fmt.Errorf("read numbers of user %s: %w", name, err)
		}
		ids = append(ids, uint32(id))
	}
	return Identity{Name: found.Username, Home: found.HomeDir, UID: ids[0], GID: ids[1], Groups: ids[2:]}, nil
}
