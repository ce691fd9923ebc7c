package refusal

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"queuekeeper/jobs"
)

// Check returns an error for a handler to return if the API refused the call because it was called too often, made by
// jobs.ThrottledIn, or because what the call needs is busy, made by jobs.RetryAfter; and nil otherwise. It judges
// nothing else: a nil error says nothing about success.
//
// It reads at most 64 kB of the body, and of an answer of 2xx only if that is JSON; so the call needs a timeout. What it
// read is put back: the body can be read from its beginning, and is the caller's to close.
func Check(resp *http.Response) error {
	a := Read(resp.StatusCode, resp.Header, peek(resp), time.Now())
	switch {
	case a.Throttled:
		return jobs.ThrottledIn(a.Scope, a.Wait, errors.New(from(resp)+a.Why))
	case a.RetryAfter > 0:
		return jobs.RetryAfter(a.RetryAfter, errors.New(from(resp)+a.Why))
	}
	return nil
}

// from is who answered. Paths and queries are left out: with some APIs the token is in there.
func from(resp *http.Response) string {
	if resp.Request == nil || resp.Request.URL == nil {
		return ""
	}
	return resp.Request.URL.Host + ": "
}

// peek reads the beginning of a body where it may be that of a refusal, and puts it back.
func peek(resp *http.Response) []byte {
	if resp.Body == nil || !tells(resp) {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	var rest io.Reader = resp.Body
	if err != nil {
		rest = failing{err} // the body might not say so twice
	}
	resp.Body = &putBack{io.MultiReader(bytes.NewReader(text), rest), resp.Body}
	return text
}

// tells reports whether the body may be that of a refusal. A stream is no such body, and may give nothing for long.
func tells(resp *http.Response) bool {
	switch resp.StatusCode / 100 {
	case 2:
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		return kind == "application/json" || kind == "application/graphql-response+json"
	case 4, 5:
		return true
	}
	return false
}

// putBack is a body that is read from its beginning again.
type putBack struct {
	io.Reader
	body io.Closer
}

func (p *putBack) Close() error { return p.body.Close() }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
