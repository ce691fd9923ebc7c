package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"queuekeeper/internal/tryout"
)

// nginxLimit is a rate as nginx writes it, for which there is a run behind it.
type nginxLimit struct {
	perSecond float64
	rate      string
}

var nginxLimits = []nginxLimit{{0.5, "30r/m"}, {10, "10r/s"}}

// nginx is a process that passes calls on to the receiver, no more than limit_req lets through.
type nginx struct {
	cmd   *exec.Cmd
	ports map[float64]int // by the limit
}

// nginxPlaces are looked in after PATH, which rarely has them for a user who is not root.
var nginxPlaces = []string{"/usr/sbin/nginx", "/usr/local/sbin/nginx"}

func findNginx() string {
	for _, name := range append([]string{"nginx"}, nginxPlaces...) {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// startNginx returns nil if there is none.
func startNginx(ctx context.Context, folder, receiver string) (*nginx, error) {
	path := findNginx()
	if path == "" {
		return nil, nil
	}
	n := &nginx{ports: map[float64]int{}}
	folder = filepath.Join(folder, "nginx")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	for _, l := range nginxLimits {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		n.ports[l.perSecond] = port
	}
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(nginxConf(folder, receiver, n.ports)), 0o644); err != nil {
		return nil, err
	}
	n.cmd = exec.CommandContext(ctx, path, "-p", folder, "-c", file, "-e", filepath.Join(folder, "error.log"))
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	for _, port := range n.ports {
		if err := listening(ctx, port); err != nil {
			return nil, errors.Join(fmt.Errorf("start nginx: %w\n%s", err, tryout.Tail(filepath.Join(folder, "error.log"), 5)), n.end())
		}
	}
	return n, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// nginxConf has a server for each limit. One process does it all, so that no second one has to change its user and
// find the folder closed.
func nginxConf(folder, receiver string, ports map[float64]int) string {
	var text strings.Builder
	text.WriteString("daemon off;\nmaster_process off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n")
	for _, use := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&text, "%s_temp_path %q;\n", use, filepath.Join(folder, use))
	}
	for i, l := range nginxLimits {
		fmt.Fprintf(&text, `limit_req_zone $server_port zone=limit%d:1m rate=%s;
server {
	listen 127.0.0.1:%d;
	location / {
		limit_req zone=limit%d burst=1 nodelay;
		proxy_pass http://%s;
	}
}
`, i, l.rate, ports[l.perSecond], i, receiver)
	}
	text.WriteString("}\n")
	return text.String()
}

const startPatience = 10 * time.Second // for a process to be there

func listening(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return conn.Close()
		}
		if !tryout.Pause(ctx, 20*time.Millisecond) {
			return err
		}
	}
}

func (n *nginx) url(perSecond float64) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", n.ports[perSecond], acceptingPath)
}

func (n *nginx) end() error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end nginx: %w", err)
	}
	late := time.AfterFunc(startPatience, func() { _ = n.cmd.Process.Kill() })
	defer late.Stop()
	_ = n.cmd.Wait() // how it ends says nothing about the limit
	return nil
}
