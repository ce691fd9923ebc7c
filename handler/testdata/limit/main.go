// Command limit becomes a command with a memory limit, for the tests of handler.
package main

import (
	"os"

	"queuekeeper/handler"
)

func main() { os.Exit(handler.Limit(os.Args[1:])) }
