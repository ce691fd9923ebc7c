package supervisor

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/wire"
)

// puppet is a child that the test plays, word by word: what it says of itself, and how it ends. Told to leave it does
// so, unless a word was "stay".
func (s *stub) puppet() int {
	words, orders := make(chan string), make(chan string)
	go s.hearWords(words)
	go s.hearOrders(orders)
	beat := time.NewTicker(s.settings.Times.Beat)
	stays := false
	for {
		select {
		case do := <-orders:
			if leaves := do == wire.Drain || do == wire.Stop; do == "" || leaves && !stays {
				return s.leave()
			}
		case word := <-words:
			if status, exits := strings.CutPrefix(word, "exit "); exits {
				s.say(wire.Status{Is: wire.Bye, Detail: "as told", Free: true})
				code, _ := strconv.Atoi(status)
				return code
			}
			switch word {
			case "ready":
				s.say(wire.Status{Is: wire.Ready})
			case "stand by":
				s.say(wire.Status{Is: wire.StandingBy, Detail: "other/1"})
			case "wait":
				s.say(wire.Status{Is: wire.Waiting, Detail: "no database"})
			case "hang":
				s.say(wire.Status{Is: wire.Beat, Stale: s.settings.Times.Stale})
			case "be silent":
				beat.Stop()
			case "stay":
				stays = true
			case "leave a holder":
				s.leaveAHolder()
			}
			s.log.Info("puppet did", "word", word)
		case <-beat.C:
			s.say(wire.Status{Is: wire.Beat})
		}
	}
}

func (s *stub) hearWords(words chan<- string) {
	lines := bufio.NewScanner(openWords(os.Getenv(eventsEnv), s.queue))
	for lines.Scan() {
		words <- lines.Text()
	}
}

// hearOrders ends with an empty order: the supervisor is gone.
func (s *stub) hearOrders(orders chan<- string) {
	for open := true; open; {
		var do string
		do, open = s.hear()
		orders <- do
	}
}

// openWords opens the pipe with words for the puppet of a queue. Whoever comes first makes it. It is open for both
// directions, so that a word stays in it until a puppet takes it.
func openWords(events, queue string) *os.File {
	path := events + "." + queue + ".words"
	if err := syscall.Mkfifo(path, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		panic(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	return f
}

// tell has the puppet of a queue do something, and waits until it has.
func (r *process) tell(t *testing.T, queue, word string) {
	t.Helper()
	before := len(r.puppetDid(t, queue, word))
	r.order(t, queue, word)
	eventuallyTrue(t, "a puppet that did "+word, func() bool { return len(r.puppetDid(t, queue, word)) > before })
}

// order has the puppet of a queue do something in its own time, such as to exit.
func (r *process) order(t *testing.T, queue, word string) {
	t.Helper()
	words := openWords(r.path, queue)
	t.Cleanup(func() { _ = words.Close() })
	if _, err := words.WriteString(word + "\n"); err != nil {
		t.Fatalf("tell %s: %v", queue, err)
	}
}

func (r *process) puppetDid(t *testing.T, queue, word string) (did []event) {
	t.Helper()
	for _, e := range r.all(t, "puppet did", queue, 0) {
		if e.Word == word {
			did = append(did, e)
		}
	}
	return did
}
