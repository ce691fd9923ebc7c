package supervisor

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

// threadsEnv is set in a supervisor under test whose threads come and go all the time.
const threadsEnv = "QUEUEKEEPER_TEST_THREADS"

const hundredEnded = "a hundred threads have ended"

func init() {
	if os.Getenv(threadsEnv) != "" && len(os.Args) > 1 && os.Args[1] == "supervise" {
		go endThreads()
	}
}

// endThreads starts threads for the rest of the process, and ends each. One with which a child was started is sooner or
// later among them.
func endThreads() {
	for n := 1; ; n++ {
		for range 10 {
			go runtime.LockOSThread() // who ends without unlocking ends the thread
		}
		time.Sleep(100 * time.Microsecond)
		if n%10 == 0 {
			eventLog().Info(hundredEnded)
		}
	}
}

// A child that asked the kernel for a signal at its parent's death would get it at the end of the thread that started it.
func TestEndOfAThreadOfTheSupervisorEndsNoChild(t *testing.T) {
	t.Parallel()
	const queues = 30
	r := start(t, plan{Queues: many("drains", queues)}, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, threadsEnv+"=1") })
	r.awaitSome(t, queues, "stub is ready", "", 1)
	r.awaitSome(t, len(r.all(t, hundredEnded, "", 0))+5, hundredEnded, "", 0)
	r.signal(t, syscall.SIGTERM)
	r.ends(t, wire.ExitOK)
	if died := r.all(t, "child died", "", 0); len(died) > 0 {
		t.Errorf("children that died: got %v, want none", died)
	}
}
