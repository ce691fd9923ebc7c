// Command queuekeeper runs job queues in Postgres. It has no Go handlers of its own: its jobs are done by commands.
package main

import (
	"os"

	"queuekeeper/cli"
)

func main() { os.Exit(cli.Main(nil)) }
