package localpg

import (
	"fmt"
	"os"
	"path/filepath"
)

// KeptDir returns the folder for the one Postgres that a user keeps between runs: ~/.local/state/queuekeeper/postgres,
// and /var/lib/queuekeeper/postgres for root, whose home the user that Postgres runs as cannot enter. It is not made.
func KeptDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/queuekeeper/postgres", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for Postgres: %w", err)
	}
	return filepath.Join(home, ".local", "state", "queuekeeper", "postgres"), nil
}
