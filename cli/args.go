package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// takes lets a command have n words besides its flags. Cobra would only count them; must says what is right.
func takes(n int, must string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		command := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		return usage(command + ": must be followed by " + must)
	}
}
