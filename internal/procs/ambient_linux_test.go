package procs

import (
	"os/exec"
	"strings"
	"testing"
)

func TestAmbientCapabilitiesEndWithUs(t *testing.T) {
	program := limited(t)
	with := []string{"--inh-caps", "+setuid", "--ambient-caps", "+setuid"}
	if err := exec.Command("setpriv", append(with, "true")...).Run(); err != nil {
		t.Skip("setpriv cannot give capabilities here:", err)
	}
	for drop, want := range map[string]bool{"0": true, "1": false} {
		out, err := exec.Command("setpriv", append(with, program, "ambient", drop)...).CombinedOutput()
		_, caps, _ := strings.Cut(string(out), "CapAmb:")
		caps, _, _ = strings.Cut(strings.TrimSpace(caps), "\n")
		if got := strings.Trim(caps, "0") != ""; err != nil || len(caps) != 16 || got != want {
			t.Errorf("ambient capabilities of a command, dropped %s: got %s, %v; want some: %v", drop, out, err, want)
		}
	}
}
