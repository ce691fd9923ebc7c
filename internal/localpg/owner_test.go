package localpg_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/localpg"
)

// ownVariable makes this test binary a program that starts a cluster in the folder it names ("-": a temporary
// one), prints the URL and holds it until its stdin ends.
const ownVariable = "LOCALPG_TEST_OWN"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(ownVariable); ok {
		own(strings.TrimPrefix(dir, "-"))
		return
	}
	os.Exit(m.Run())
}

func own(dir string) {
	c, err := localpg.Start(context.Background(), localpg.Options{Dir: dir, Settings: quick})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.URL("postgres"))
	io.Copy(io.Discard, os.Stdin)
	if err := c.Stop(); err != nil {
		os.Exit(1)
	}
}

// owner is another process that owns a cluster.
type owner struct {
	cmd *exec.Cmd
	url string
}

func startOwner(t *testing.T, dir string) *owner {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, exec.Command(binary), dir)
}

// startOrdinaryOwner starts it as a user that is not root, from a place where that user can execute it.
func startOrdinaryOwner(t *testing.T) *owner {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(keptDir(t))
	copied := filepath.Join(dir, "owner")
	if out, err := exec.Command("cp", binary, copied).CombinedOutput(); err != nil {
		t.Fatalf("copy the test binary: %v: %s", err, out)
	}
	cmd := exec.Command(copied)
	cmd.Dir = dir
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody(t)}
	}
	return launch(t, cmd, "")
}

func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, errU := strconv.Atoi(u.Uid)
	gid, errG := strconv.Atoi(u.Gid)
	if errU != nil || errG != nil {
		t.Fatalf("user nobody: got uid %q and gid %q, want numbers", u.Uid, u.Gid)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func launch(t *testing.T, cmd *exec.Cmd, dir string) *owner {
	t.Helper()
	cmd.Env = append(os.Environ(), ownVariable+"=-"+dir)
	if _, err := cmd.StdinPipe(); err != nil { // closed by Wait
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd: cmd}
	t.Cleanup(func() { o.kill(t) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	o.url = strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(o.url, "postgres://") {
		t.Fatalf("owner process: got %q (error %v), want the URL of its cluster", line, err)
	}
	return o
}

// kill ends the owner as nothing can be prepared for.
func (o *owner) kill(t *testing.T) {
	t.Helper()
	if o.cmd.ProcessState != nil {
		return
	}
	if err := o.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := o.cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("owner process: got %v, want signal: killed", err)
	}
}
