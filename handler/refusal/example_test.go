package refusal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"queuekeeper/handler/refusal"
	"queuekeeper/jobs"
)

var client = &http.Client{Timeout: 20 * time.Second}

type comment struct {
	URL  string `json:"url"`
	Body string `json:"body"`
}

// postComment is a handler that calls an API. What refusal.Check returns goes back as it is; the rest of the answer is
// the handler's own to judge.
func postComment(ctx context.Context, c comment) error {
	text, err := json.Marshal(map[string]string{"body": c.Body})
	if err != nil {
		return jobs.Permanent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(text))
	if err != nil {
		return jobs.Permanent(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := refusal.Check(resp); err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return jobs.Permanent(fmt.Errorf("post comment: %s", resp.Status))
	case resp.StatusCode > 299:
		return fmt.Errorf("post comment: %s", resp.Status)
	}
	return nil
}

func ExampleCheck() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer api.Close()

	handlers := jobs.Handlers{"github": {"PostComment": jobs.Handle(postComment)}} // for cli.Main(handlers)

	args, err := json.Marshal(comment{URL: api.URL, Body: "thanks"})
	if err != nil {
		log.Panic(err)
	}
	err = handlers["github"]["PostComment"](context.Background(), jobs.Job{Name: "PostComment", Args: args})
	wait, _, throttled := jobs.AsThrottled(err)
	fmt.Println(throttled, wait)
	// Output: true 30s
}

// Only the status, the header and the body are needed: whoever calls the API in another way asks Read.
func ExampleRead() {
	header := http.Header{}
	header.Set("X-RateLimit-Remaining", "0")
	header.Set("X-RateLimit-Reset", "1767225660")
	now := time.Unix(1767225600, 0)

	forbidden := refusal.Read(http.StatusForbidden, header, nil, now)
	fmt.Println(forbidden.Throttled, forbidden.Wait)

	missing := refusal.Read(http.StatusNotFound, header, nil, now)
	fmt.Println(missing.Throttled, missing.Rest)
	// Output:
	// true 1m0s
	// false 1m0s
}
