package supervisor

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

const (
	maxNotices  = 64                     // that may wait for the manager to read
	lastNotices = 100 * time.Millisecond // that the manager has to read, at the end

	// maxStatusText is what of a status is said, in bytes. systemd drops a notice of more than 4096, and a byte
	// that is no UTF-8 becomes three.
	maxStatusText = 1000
)

// notifier tells systemd, or what else has set NOTIFY_SOCKET, how the supervisor is. Its methods belong to one
// goroutine and never wait, but for close: another one writes. If there is nobody to tell they do nothing.
//
// The environment stays as it is; childEnv keeps it from the children.
type notifier struct {
	log      hclog.Logger
	watchdog time.Duration // the manager ends a supervisor that says nothing for so long; 0: it does not
	last     time.Duration // that close waits
	said     string        // the last status

	conn    *net.UnixConn
	notices chan string   // nil: nobody to tell
	done    chan struct{} // closed when the last is written
	trouble sync.Once     // logged
}

func newNotifier(log hclog.Logger) *notifier {
	n := &notifier{log: log, last: lastNotices}
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return n
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		n.lost(err)
		return n
	}
	if n.watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("watchdog gets no signs of life", "error", err)
	}
	n.conn = conn
	n.notices = make(chan string, maxNotices)
	n.done = make(chan struct{})
	go n.write()
	return n
}

// ticks fires when alive must be called; nil: it need not.
func (n *notifier) ticks() <-chan time.Time { return time.Tick(n.every()) }

// every is half of the time after which the manager loses patience.
func (n *notifier) every() time.Duration { return n.watchdog / 2 }

// ready ends the start or a reload, be it a failed one. If it returns false it was not said, and must be once more: the
// manager waits for it.
func (n *notifier) ready(status string) bool {
	if n.notices == nil {
		return true // nobody waits
	}
	if !n.say(daemon.SdNotifyReady + "\n" + statusNotice(status)) {
		return false
	}
	n.said = status
	return true
}

// reloading starts a reload. The time has to be in the same notice: systemd waits for a reload that began after
// its own signal.
func (n *notifier) reloading() {
	n.say(daemon.SdNotifyReloading + "\n" + strings.TrimSuffix(daemon.SdNotifyMonotonicUsec(), "\n"))
}

func (n *notifier) stopping() { n.say(daemon.SdNotifyStopping) }

// status is for people. To repeat the last one costs nothing. While many notices wait it is left for later: it must not
// take the room of what the manager needs.
func (n *notifier) status(text string) {
	if text != n.said && len(n.notices) < maxNotices/2 && n.say(statusNotice(text)) {
		n.said = text
	}
}

func (n *notifier) alive() { n.say(daemon.SdNotifyWatchdog) }

// statusNotice makes text one line of valid UTF-8 without control characters. A line break in it would start
// another assignment, and for the rest systemd drops the notice, with all that is in it.
func statusNotice(text string) string {
	return "STATUS=" + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text[:min(len(text), maxStatusText)])
}

// say reports whether the notice will be written.
func (n *notifier) say(notice string) bool {
	if n.notices == nil {
		return false
	}
	select {
	case n.notices <- notice:
		return true
	default:
		n.lost(fmt.Errorf("%d notices are not read", maxNotices))
		return false
	}
}

// write may wait for the manager for as long as the supervisor lives: one that is busy for a while must not miss
// that a reload is over.
func (n *notifier) write() {
	defer close(n.done)
	defer n.conn.Close()
	for notice := range n.notices {
		if _, err := n.conn.Write([]byte(notice)); err != nil {
			n.lost(err)
		}
	}
}

// lost logs the first notice that does not reach the manager. One without a reader loses all that follow.
func (n *notifier) lost(err error) {
	n.trouble.Do(func() {
		n.log.Warn("process manager not told how we are: it may take us for hung, no more is said about it", "error", err)
	})
}

// close has what is queued written, as far as the manager reads it at once. Nothing can be said after it.
func (n *notifier) close() {
	if n.notices == nil {
		return
	}
	_ = n.conn.SetWriteDeadline(time.Now().Add(n.last)) // of a socket that is open: cannot fail
	close(n.notices)
	<-n.done
	n.notices = nil
}
