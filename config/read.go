package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxSize of a file in bytes. Twenty queues take two thousand; what is larger is not a queues.toml.
const maxSize = 1 << 20

// readFile is the text of the regular file at path. It does not wait for the other end of a FIFO, and reads
// no more than maxSize of anything. The errors name the path.
func readFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w (queuekeeper init prints one to start from)", err)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read %s: is %s, must be a regular file", path, fileType(info.Mode()))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSize {
		return "", fmt.Errorf("read %s: is %d bytes long, must be at most %d", path, max(info.Size(), maxSize+1), maxSize)
	}
	return string(text), nil
}

func fileType(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// cleanText takes away what editors of other systems add: the byte order mark and the CR of CRLF. All else
// that is not plain UTF-8 text is a fault. The result ends with a newline: the TOML library counts lines by it.
func cleanText(text string) (string, *Fault) {
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return "", &Fault{Line: 1, Text: "is UTF-16 text, must be UTF-8"}
	}
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if i := strings.IndexFunc(text, isControl); i >= 0 {
		return "", &Fault{Line: lineAt(text, i), Text: control(text[i])}
	}
	if i := invalidUTF8(text); i >= 0 {
		return "", &Fault{Line: lineAt(text, i), Text: fmt.Sprintf("has the byte 0x%02x, which is not UTF-8; must be UTF-8 text", text[i])}
	}
	return text, nil
}

// lineAt is the line, from 1, of the byte at i.
func lineAt(text string, i int) int { return 1 + strings.Count(text[:i], "\n") }

func isControl(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f }

func control(c byte) string {
	switch c {
	case 0:
		return "has a NUL byte, must be UTF-8 text"
	case '\r':
		return "has a carriage return (CR) alone, lines must end with LF or CRLF"
	}
	return fmt.Sprintf("has the control character 0x%02x, must be text", c)
}

// invalidUTF8 is where text stops being UTF-8, or -1.
func invalidUTF8(text string) int {
	for i, r := range text {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
			return i
		}
	}
	return -1
}
