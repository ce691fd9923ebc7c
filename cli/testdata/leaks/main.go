// Command leaks is a program with Go handlers, one of which takes all the memory there is.
package main

import (
	"context"
	"os"

	"queuekeeper/cli"
	"queuekeeper/jobs"
)

func main() {
	os.Exit(cli.Main(jobs.Handlers{"go": {
		"Leak":  func(context.Context, jobs.Job) error { leak(); return nil },
		"Quick": func(context.Context, jobs.Job) error { return nil },
	}}))
}

func leak() {
	var kept [][]byte
	for len(kept) < 4096 { // of a megabyte each: a test that fails must not take the machine with it
		page := make([]byte, 1<<20)
		for i := range page {
			page[i] = 1
		}
		kept = append(kept, page)
	}
}
