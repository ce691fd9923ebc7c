package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"queuekeeper/migrations"
)

func versionCommand(p *program) *cobra.Command {
	return p.printsData(&cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program and of the tables it works on",
		Example: "  queuekeeper version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version string `json:"version"`
				Tables  int    `json:"tables_major"`
				Go      string `json:"go"`
			}{"unknown", migrations.Major, runtime.Version()}
			if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
				v.Version = build.Main.Version
			}
			if p.json {
				return printJSON(p.stdout, v)
			}
			_, err := fmt.Fprintf(p.stdout, "queuekeeper %s, tables of major version %d, %s\n", v.Version, v.Tables, v.Go)
			return err
		},
	})
}
