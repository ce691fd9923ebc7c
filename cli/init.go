package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"queuekeeper/config"
)

func initCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Print a commented queues.toml to start from",
		Example: "  queuekeeper init > queues.toml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.stdout, config.Sample())
			return err
		},
	}
}
