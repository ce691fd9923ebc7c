package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// checkLane refuses a --lane that was given and is empty: no job has such a lane, and a script whose variable is empty
// must not mean all of them.
func checkLane(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("lane"); f.Changed && f.Value.String() == "" {
		return usage(`--lane "": must have 1 to 255 bytes, or be left out`)
	}
	return nil
}

// laneText is a lane in a table: in quotes if one could not see it there, or not tell where it ends.
func laneText(lane string) string {
	plain := shown(lane) == lane && strings.Trim(lane, " ") == lane && !strings.Contains(lane, "  ") && !strings.HasPrefix(lane, `"`)
	if plain {
		return lane
	}
	return strconv.Quote(lane)
}
