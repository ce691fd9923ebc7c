package refusal

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// call asks a server that answers with answer.
func call(t *testing.T, answer http.HandlerFunc) *http.Response {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client := server.Client()
	client.Timeout = time.Minute
	resp, err := client.Get(server.URL + "/bot123:SECRET/send?key=SECRET")
	if err != nil {
		t.Fatalf("call the server: %v", err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// answering is a server that answers so.
func answering(status int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range headerOf(header) {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestCheckTellsTheHandlerWhatToReturn(t *testing.T) {
	const (
		json = "Content-Type: application/json; charset=utf-8\n"
		busy = `{"error":{"code":"lock_timeout"}}`
		slow = `{"errors":[{"type":"RATE_LIMITED"}]}`
	)
	for _, c := range []struct {
		status       int
		header, body string
		want         string
	}{
		{429, "Retry-After: 30", "slow down", "throttled 30s "},
		{429, "", "slow down", "throttled 0s "},
		{503, "Retry-After: 30", "", "throttled 30s "},
		{429, "X-RateLimit-Scope: shared\nRetry-After: 2", "", "throttled 2s lane"},
		{429, json, `{"retry_after":0.5,"global":true}`, "throttled 500ms queue"},
		{403, json, `{"message":"secondary rate limit"}`, "throttled 0s "},
		{429, json, `{"policyName":"DAILY"}`, "throttled 1h0m0s "},
		{200, json, slow, "throttled 0s "},
		{200, "Content-Type: application/graphql-response+json", slow, "throttled 0s "},
		{200, "Content-Type: text/plain", slow, "nothing"},
		{429, json, busy, "retry 2s"},
		{200, json, `{"ok":true}`, "nothing"},
		{404, json, `{"retry_after":5}`, "nothing"},
		{404, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60", "", "nothing"},
		{500, "", "broken", "nothing"},
	} {
		resp := call(t, answering(c.status, c.header, c.body))
		err := Check(resp)
		if got := meaning(err); got != c.want {
			t.Errorf("status %d, %q, body %q: got %q, want %q", c.status, c.header, c.body, got, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("status %d: got the error %q, want no secret of the URL in it", c.status, err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != c.body || err != nil {
			t.Errorf("status %d: body after it: got %q and error %v, want %q", c.status, body, err, c.body)
		}
	}
}

// meaning is what the queue makes of a handler's error.
func meaning(err error) string {
	if wait, scope, ok := jobs.AsThrottled(err); ok {
		return fmt.Sprintf("throttled %s %s", wait, scope)
	}
	if after, ok := jobs.AsRetryAfter(err); ok {
		return fmt.Sprintf("retry %s", after)
	}
	if err != nil {
		return err.Error()
	}
	return "nothing"
}

func TestCheckSaysWhoRefusedAndBecauseOfWhat(t *testing.T) {
	resp := call(t, answering(429, "Retry-After: 30", ""))
	want := resp.Request.URL.Host + ": status 429, Retry-After: 30"
	if err := Check(resp); err == nil || err.Error() != want {
		t.Errorf("got the error %v, want %q", err, want)
	}
}

func TestCheckLeavesTheWholeBodyToTheCaller(t *testing.T) {
	for _, size := range []int{0, 1, maxBody - 1, maxBody, maxBody + 1, 10 * maxBody} {
		want := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
		resp := call(t, answering(429, "", want))
		if err := Check(resp); err == nil {
			t.Errorf("429 with %d bytes: got no error, want one", size)
		}
		if got, err := io.ReadAll(resp.Body); string(got) != want || err != nil {
			t.Errorf("429 with %d bytes: got %d bytes and error %v after it, want the same bytes", size, len(got), err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Errorf("429 with %d bytes: got %v from Close, want none", size, err)
		}
	}
}

// counting is a body that counts what is read and knows whether it was closed.
type counting struct {
	io.Reader
	read   int
	closed bool
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func (c *counting) Close() error {
	c.closed = true
	return nil
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// EX09
func TestCheckReadsNoMoreThanItNeeds(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   string
		want   int
	}{
		{200, "application/json", maxBody},
		{200, "text/event-stream", 0},
		{200, "application/x-ndjson", 0},
		{200, "", 0},
		{101, "application/json", 0},
		{302, "application/json", 0},
		{429, "", maxBody},
		{500, "text/html", maxBody},
	} {
		body := &counting{Reader: endless{}}
		resp := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: body}
		_ = Check(resp)
		if body.read != c.want || body.closed {
			t.Errorf("endless %q with status %d: got %d bytes read, closed: %t, want %d and open", c.kind, c.status, body.read, body.closed, c.want)
		}
		if _ = resp.Body.Close(); !body.closed {
			t.Errorf("endless %q with status %d: got Close lost, want the body closed", c.kind, c.status)
		}
	}
}

// EX09
func TestCheckSurvivesAZipBomb(t *testing.T) {
	const size = 32 << 20
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	for range size / (1 << 20) {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatalf("zip: %v", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("zip: %v", err)
	}
	resp := call(t, answering(429, "Content-Encoding: gzip\nRetry-After: 3", zipped.String()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Check(resp)
	runtime.ReadMemStats(&after)
	if got, want := meaning(err), "throttled 3s "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > size/8 {
		t.Errorf("memory taken for a body of %d MB: got %d MB, want a few", size>>20, got>>20)
	}
}

// failingOnce is a body that does not say twice that it broke off.
type failingOnce struct{ err error }

func (f *failingOnce) Read([]byte) (int, error) {
	err := f.err
	f.err = io.EOF
	return 0, err
}

func TestABodyThatBreaksOffIsJudgedByTheRest(t *testing.T) {
	broken := errors.New("connection reset")
	resp := &http.Response{StatusCode: 429, Header: headerOf("Retry-After: 3"), Body: &counting{
		Reader: io.MultiReader(strings.NewReader(`{"half`), &failingOnce{broken}),
	}}
	if got, want := meaning(Check(resp)), "throttled 3s "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := io.ReadAll(resp.Body); string(got) != `{"half` || !errors.Is(err, broken) {
		t.Errorf("body after it: got %q and error %v, want what there was and %v", got, err, broken)
	}
}

func TestCheckTakesAnAnswerWithoutABody(t *testing.T) {
	resp := &http.Response{StatusCode: 429}
	if got, want := meaning(Check(resp)), "throttled 0s "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
