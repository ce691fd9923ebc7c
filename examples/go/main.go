// Command worker is a queuekeeper with Go handlers of its own: the same commands, and jobs done by functions.
//
//	go run . dev
//	go run . enqueue github CountIssues '{"repo": "golang/go"}'    # in another terminal; `dev` prints its DATABASE_URL
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"queuekeeper/cli"
	"queuekeeper/handler/refusal"
	"queuekeeper/jobs"
)

// The queue, then the job's name. queues.toml has a [[worker]] for each queue; it needs no command.
func main() {
	os.Exit(cli.Main(jobs.Handlers{
		"github": {"CountIssues": jobs.Handle(countIssues)},
	}))
}

// countIssuesArgs are decoded from the job's args.
type countIssuesArgs struct {
	Repo string `json:"repo"` // "golang/go"
}

// countIssues returns nil when the job is done. Any other error starts it again after a back-off, except for those
// the package jobs makes.
func countIssues(ctx context.Context, args countIssuesArgs) error {
	if args.Repo == "" {
		return jobs.Permanent(fmt.Errorf("args name no repo")) // dead at once: no later attempt can help
	}
	query := url.Values{"q": {"is:issue is:open repo:" + args.Repo}}
	// The context ends at the job's timeout, when the job is cancelled and when the process must leave.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.github.com/search/issues?"+query.Encode(), nil)
	if err != nil {
		return jobs.Permanent(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// If GitHub says that it was called too often the whole queue pauses, as long as it says, and the attempt does not count.
	if err := refusal.Check(resp); err != nil {
		return err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		var found struct {
			Total int `json:"total_count"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
			return fmt.Errorf("read GitHub's answer: %w", err)
		}
		fmt.Printf("%s has %d open issues\n", args.Repo, found.Total)
		return nil
	case http.StatusNotFound, http.StatusUnprocessableEntity:
		return jobs.Permanent(fmt.Errorf("GitHub answered %s", resp.Status))
	}
	return fmt.Errorf("GitHub answered %s", resp.Status)
}
