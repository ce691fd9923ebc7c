// Command limited is a process that limits itself, for the tests of procs.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"

	"queuekeeper/internal/procs"
)

func main() {
	switch first := number(2); os.Args[1] {
	case "memory": // LIMIT, and how much to fill, in MB
		must(procs.LimitMemory(int64(first) << 20))
		must(debug.SetCrashOutput(os.NewFile(3, "crash"), debug.CrashOptions{}))
		fill(number(3))
	case "panic": // LIMIT
		must(procs.LimitMemory(int64(first) << 20))
		must(debug.SetCrashOutput(os.NewFile(3, "crash"), debug.CrashOptions{}))
		panic("out of memory")
	case "garbage": // the same, but none of it is kept
		must(procs.LimitMemory(int64(first) << 20))
		for range number(3) {
			fill(1)
		}
	case "command": // of both limits the lower one holds, for a command whose buffer is so large
		must(procs.LimitData(int64(first) << 20))
		must(procs.LimitData(1 << 40))
		must(exec.Command("dd", "if=/dev/zero", "of=/dev/null", "count=1", "bs="+os.Args[3]+"M").Run())
	case "ambient": // 0 or 1: whether to drop them
		if first == 1 {
			must(procs.DropAmbient())
		}
		out, err := exec.Command("grep", "CapAmb", "/proc/self/status").Output()
		must(err)
		fmt.Print(string(out))
	case "nice": // VALUE, and then a lower one
		nice(first)
	}
	fmt.Println("done")
}

func fill(mb int) {
	kept := make([][]byte, mb)
	for i := range kept {
		kept[i] = make([]byte, 1<<20)
		for j := range kept[i] {
			kept[i][j] = 1
		}
	}
	runtime.KeepAlive(kept)
}

// nice raises the value while threads are starting, and says what a command has after it.
func nice(n int) {
	leave := make(chan struct{})
	var threads sync.WaitGroup
	for range 20 {
		threads.Go(func() {
			runtime.LockOSThread() // this goroutine's own thread, until the end
			threads.Go(func() {
				runtime.LockOSThread()
				<-leave
			})
			<-leave
		})
	}
	must(procs.Nice(n))
	must(procs.Nice(n - 1))
	for range 50 {
		// Each from whatever thread it comes to be.
		out, err := exec.Command("nice").Output()
		must(err)
		fmt.Print(string(out))
	}
	close(leave)
	threads.Wait()
	group, _ := os.ReadFile("/proc/self/autogroup")
	fmt.Print(string(group))
}

func number(i int) int {
	n, err := strconv.Atoi(os.Args[i])
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
}
