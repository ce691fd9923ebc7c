package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// entrypoint is what a container of the Dockerfile runs, at this site.
func (s *site) entrypoint() (args []string) {
	s.t.Helper()
	text := s.adapted("Dockerfile")
	for _, instruction := range []string{"ENTRYPOINT", "CMD"} {
		var part []string
		found := regexp.MustCompile(`(?m)^` + instruction + ` (\[.*\])$`).FindStringSubmatch(text)
		if found == nil || json.Unmarshal([]byte(found[1]), &part) != nil {
			s.t.Fatalf("Dockerfile: got %s %q, want one JSON list", instruction, found)
		}
		args = append(args, part...)
	}
	return args
}

// container starts what the Dockerfile says behind some other program.
func container(s *site, front ...string) (cmd *exec.Cmd, wait func()) {
	cmd = s.command(append(front, s.entrypoint()...)...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+s.url)
	return cmd, s.start(cmd)
}

// The signal goes to the whole process group, the supervisor passes the end on, and its children get it once.
func TestInitInFrontStopsInOrder(t *testing.T) {
	for _, front := range [][]string{{"tini", "-s", "--"}, {"tini", "-s", "-g", "--"}, {"dumb-init", "--"}} {
		t.Run(strings.Join(front, " "), func(t *testing.T) {
			s := newSite(t, front[0])
			cmd, wait := container(s, front...)
			s.drains(func() func() { s.signal(cmd.Process.Pid, syscall.SIGTERM); return wait })
			s.cleanEnd("2 done, 1 pending")
		})
	}
}

// Without an init in front the supervisor is process 1 of its container.
func TestProcessOneStopsInOrder(t *testing.T) {
	s := newSite(t, "unshare")
	unshare := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if err := exec.Command(unshare[0], append(unshare[1:], "true")...).Run(); err != nil {
		t.Skipf("unshare --pid is not allowed here: %v", err)
	}
	_, wait := container(s, unshare...)
	s.drains(func() func() { s.signal(s.supervisor(), syscall.SIGTERM); return wait })
	s.cleanEnd("2 done, 1 pending")
}

func TestDockerfileStopsWithTERM(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^STOPSIGNAL (.*)$`).FindSubmatch(text)
	if len(found) != 2 || string(found[1]) != "SIGTERM" {
		t.Errorf("STOPSIGNAL: got %q, want SIGTERM, which drains", found)
	}
}
