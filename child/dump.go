package child

import (
	"os"
	"runtime"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// maxDump is how much of a dump is written, in bytes: each line of it is a line of the log.
const maxDump = 32 << 10

// dump logs what every goroutine is doing, at each request: the supervisor makes one of a child that hangs, and
// people may. It shares nothing with the loop, which may be what hangs.
func dump(requests <-chan os.Signal, log hclog.Logger) {
	for range requests {
		text := make([]byte, maxDump)
		text = text[:runtime.Stack(text, true)]
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" {
				log.Warn("dump", "line", hclog.Quote(line))
			}
		}
	}
}
