package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"queuekeeper/internal/procs"
)

// receiveArgument makes this program the receiver.
const receiveArgument = "receive"

// Where the receiver listens for calls of jobs: what is under refusingPath it refuses now and then.
const (
	acceptingPath = "/accepting"
	refusingPath  = "/refusing"
)

// Of each queue's calls one in refuseEvery is refused, and told to come back after refusedFor.
const (
	refuseEvery = 50
	refusedFor  = 3 * time.Second
)

// receive is the receiver: it says where it listens, and writes a line to its log for each call when that comes in.
func receive(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	mux := http.NewServeMux()
	for _, path := range []string{acceptingPath, refusingPath} {
		c := calls{log: file, refuses: path == refusingPath, came: map[string]int{}}
		mux.HandleFunc("GET "+path+"/{queue}/{id}", c.serve)
	}
	return http.Serve(listener, mux)
}

type calls struct {
	log     *os.File
	refuses bool

	mu   sync.Mutex
	came map[string]int // by queue
}

func (c *calls) serve(w http.ResponseWriter, r *http.Request) {
	now := procs.BootClock()
	status := http.StatusOK
	if c.count(r.PathValue("queue"))%refuseEvery == 0 && c.refuses {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(int(refusedFor.Seconds())))
	}
	line := fmt.Sprintf("%s %s %d %d\n", r.PathValue("queue"), r.PathValue("id"), now, status)
	if _, err := c.log.WriteString(line); err != nil { // one write, so that lines do not mix
		status = http.StatusInternalServerError
	}
	w.WriteHeader(status)
}

func (c *calls) count(queue string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came[queue]++
	return c.came[queue]
}

// receiver is the receiver's process.
type receiver struct {
	cmd     *exec.Cmd
	address string
	log     string // its path
}

func startReceiver(ctx context.Context, self, log string) (*receiver, error) {
	r := &receiver{cmd: exec.CommandContext(ctx, self, receiveArgument, log), log: log}
	r.cmd.Stderr = os.Stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the receiver: %w", err), r.end())
	}
	r.address = strings.TrimSpace(line)
	return r, nil
}

func (r *receiver) url(path string) string { return "http://" + r.address + path }

// end kills it: its log is written at once.
func (r *receiver) end() error {
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the receiver: %w", err)
	}
	_ = r.cmd.Wait() // its error says that it was killed
	return nil
}
