package supervisor

import (
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/config"
)

func TestNamesThatAWorkerListsGoToNoOther(t *testing.T) {
	env := []string{
		"PATH=/bin", "A=1", "B=2", "BOTH=3", "A_TOO=4", "EMPTY=", "NOTIFY_SOCKET=/run/x", "WATCHDOG_USEC=1", "WATCHDOG_PID=1", "LISTEN_FDS=1",
	}
	all := []config.Worker{{Queue: "a", Env: []string{"A", "BOTH"}}, {Queue: "b", Env: []string{"BOTH", "B", "EMPTY"}}, {Queue: "c"}}
	before := slices.Clone(env)
	for i, want := range []string{"PATH=/bin A=1 BOTH=3 A_TOO=4", "PATH=/bin B=2 BOTH=3 A_TOO=4 EMPTY=", "PATH=/bin A_TOO=4"} {
		if got := strings.Join(childEnv(env, all[i], all), " "); got != want {
			t.Errorf("environment of queue %s: got %s, want %s", all[i].Queue, got, want)
		}
	}
	if !slices.Equal(env, before) {
		t.Errorf("environment of the supervisor: got %v, want %v as before", env, before)
	}
}

func TestUserIsFoundByNameAndByNumber(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("this system has no user nobody")
	}
	byName, err := Identify("nobody")
	if err != nil || byName.Name != "nobody" || byName.Home != nobody.HomeDir || !slices.Contains(byName.Groups, byName.GID) {
		t.Errorf("nobody: got %+v, %v; want it at %s with its own group", byName, err, nobody.HomeDir)
	}
	byNumber, err := Identify(nobody.Uid)
	if err != nil || byNumber.UID != byName.UID || byNumber.Name != "nobody" {
		t.Errorf("%s: got %+v, %v; want nobody", nobody.Uid, byNumber, err)
	}
	for _, name := range []string{"no-such-user", "4294967290", "-1", "99999999999999999999"} {
		if _, err := Identify(name); err == nil || !strings.Contains(err.Error(), "look for user "+name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
}

func TestProcessOfAUserHasNothingOfOurs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts processes of other users")
	}
	before, err := syscall.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setgroups([]int{0, 1}); err != nil { // something of ours for it not to have
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setgroups(before) }()
	const script = `id -un; id -G; echo $HOME $USER $LOGNAME $KEPT`
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "USER=root", "KEPT=yes"}
	if err := runAs(cmd, lookUp([]config.Worker{{User: "nobody"}})["nobody"]); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	groups, _ := exec.Command("id", "-G", "nobody").Output()
	home, _ := Identify("nobody")
	want := "nobody\n" + string(groups) + home.Home + " nobody nobody yes\n"
	if err != nil || string(out) != want {
		t.Errorf("process of nobody: got %q, %v; want %q", out, err, want)
	}
}

func TestOurOwnUserTakesNoRights(t *testing.T) {
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "echo $HOME")
	if err := runAs(cmd, lookUp([]config.Worker{{User: self.Username}})[self.Username]); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if cmd.SysProcAttr != nil || err != nil || string(out) != self.HomeDir+"\n" {
		t.Errorf("got %+v, %q, %v; want no credential and %s", cmd.SysProcAttr, out, err, self.HomeDir)
	}
	none := exec.Command("true")
	if err := runAs(none, found{}); err != nil || none.SysProcAttr != nil || none.Env != nil {
		t.Errorf("no user: got %v, %+v, %v; want nothing changed", err, none.SysProcAttr, none.Env)
	}
}
