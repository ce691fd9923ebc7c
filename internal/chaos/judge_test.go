package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	handled   = queue{name: "plain", burst: 1, concurrency: 1}
	commanded = queue{name: "command", burst: 1, concurrency: 1, command: true}
	paced     = queue{name: "slow", perSecond: 4, burst: 1, concurrency: 1}
)

// at is a time of a round, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func ended(number, start int, end string) attempt {
	return attempt{number: number, starts: []time.Time{at(start)}, end: end}
}

func done(attempts, excused int) row {
	return row{ID: 1, Queue: handled.name, Name: workName, State: "done", Attempts: attempts, Excused: excused}
}

// One case for each thing that can be wrong, beside the same without the fault.
func TestJudgeFindsWhatIsWrong(t *testing.T) {
	twice := []attempt{ended(1, 1000, ""), ended(2, 3000, doneMark)}
	crowded := []attempt{{number: 1, starts: []time.Time{at(0)}, end: doneMark, crowd: true}}
	doubled := []attempt{{number: 1, starts: []time.Time{at(0), at(9)}, end: doneMark}}
	kill := []fault{{queue: handled.name, kills: true, from: at(1100), to: at(1200)}}
	quit := []fault{{queue: everyQueue, from: at(1100), to: at(1200)}}
	refused := row{ID: 1, Queue: handled.name, Name: refuseName, State: "dead", Attempts: 1}

	for name, c := range map[string]struct {
		row    row
		ran    []attempt
		faults []fault
		want   string // "": nothing is wrong
	}{
		"done at once":              {done(1, 0), []attempt{ended(1, 0, doneMark)}, nil, ""},
		"lost":                      {done(1, 0), nil, nil, "it never started"},
		"done, and never ended":     {done(1, 0), []attempt{ended(1, 0, "")}, nil, "ended"},
		"done by another attempt":   {done(2, 1), []attempt{ended(1, 0, doneMark)}, nil, "want done after attempt 2"},
		"refused and dead":          {refused, []attempt{ended(1, 0, refuseMark)}, nil, ""},
		"dead, and could be done":   {row{Name: workName, State: "dead", Attempts: 1}, []attempt{ended(1, 0, doneMark)}, nil, "got dead"},
		"one attempt started twice": {done(1, 0), doubled, nil, "got 2 starts"},
		"too many at a time":        {done(1, 0), crowded, nil, "beside more"},
		"killed and repeated":       {done(2, 0), twice, kill, ""},
		"repeated for nothing":      {done(2, 1), twice, nil, "nothing in between"},
		"repeated before the kill":  {done(2, 1), []attempt{ended(1, 0, ""), ended(2, 900, doneMark)}, kill, "nothing in between"},
		"started after the kill":    {done(2, 1), []attempt{ended(1, 1300, ""), ended(2, 1900, doneMark)}, kill, "nothing in between"},
		"failed and repeated":       {done(2, 0), []attempt{ended(1, 0, failMark), ended(2, 1900, doneMark)}, nil, ""},
		"stopped and excused":       {done(2, 1), twice, quit, ""},
		"stopped, and it counts":    {done(2, 0), twice, quit, "attempts that count: got 2, want 1 to 1"},
		"killed, and it is excused": {done(2, 1), twice, kill, "attempts that count: got 1, want 2 to 2"},
		"of another queue":          {done(2, 1), twice, []fault{{queue: "other", from: at(1100), to: at(1200)}}, "nothing in between"},
		"of commands":               {done(2, 1), twice, []fault{{queue: everyQueue, commands: true, from: at(1100), to: at(1200)}}, "nothing in between"},
	} {
		c.row.ID, c.row.Queue = 1, handled.name
		wrong := judge([]queue{handled, commanded}, []row{c.row}, map[int64][]attempt{1: c.ran}, c.faults)
		expect(t, name, wrong, c.want)
	}
}

func expect(t *testing.T, name string, wrong []error, want string) {
	t.Helper()
	switch {
	case want == "" && len(wrong) > 0:
		t.Errorf("%s: got %v, want nothing wrong", name, wrong)
	case want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].Error(), want)):
		t.Errorf("%s: got %v, want one that says %q", name, wrong, want)
	}
}

// A command is killed before it could mark its start, which it does when it gets the processor.
func TestCommandMayMarkItsStartAfterTheKill(t *testing.T) {
	ran := map[int64][]attempt{1: {ended(1, 1900, ""), ended(2, 4000, doneMark)}}
	for _, q := range []queue{handled, commanded} {
		r := done(2, 1)
		r.Queue = q.name
		wrong := judge([]queue{q}, []row{r}, ran, []fault{{queue: q.name, from: at(1100), to: at(1200)}})
		want := "nothing in between"
		if q.command {
			want = ""
		}
		expect(t, q.name, wrong, want)
	}
}

func TestJudgeCountsStartsInWindows(t *testing.T) {
	for name, c := range map[string]struct {
		starts []int // in milliseconds
		want   string
	}{
		"at the limit": {[]int{0, 253, 506, 759, 1012}, ""},
		"one too many": {[]int{0, 253, 506, 759, 800}, "starts in a window of 1s: got 5, want at most 4"},
		"a bit late":   {[]int{15, 253, 506, 759, 1012}, ""},
		"too many in the long run": {
			[]int{0, 240, 490, 740, 990, 1230, 1480, 1730, 1980, 2220, 2470, 2720, 2960},
			"starts in a window of 3s: got 13, want at most 12",
		},
	} {
		var rows []row
		ran := map[int64][]attempt{}
		for i, ms := range c.starts {
			id := int64(i)
			rows = append(rows, row{ID: id, Queue: paced.name, Name: workName, State: "done", Attempts: 1})
			ran[id] = []attempt{ended(1, ms, doneMark)}
		}
		expect(t, name, judge([]queue{paced}, rows, ran, nil), c.want)
	}
}

func TestJudgeLooksAtQuotasAndLanes(t *testing.T) {
	quota := queue{name: "quota", quota: 3}
	lanes := queue{name: "lanes", lanes: 2, perLane: 2}
	strict := queue{name: "strict", lanes: 2, strict: true}
	for name, c := range map[string]struct {
		queue  queue
		starts [][]int // of each job, in milliseconds; the even ones are in one lane, the odd ones in another
		want   string
	}{
		"quota kept":       {quota, [][]int{{0}, {10}, {20}, {2000}}, ""},
		"quota broken":     {quota, [][]int{{0}, {10}, {20}, {1900}}, "starts in a window of 2s: got 4, want at most 3"},
		"lane kept":        {lanes, [][]int{{0}, {1}, {505}, {506}, {1010}}, ""},
		"lane broken":      {lanes, [][]int{{0}, {1}, {505}, {506}, {900}}, "starts of lane 0 in a window of 1s: got 3, want at most 2"},
		"in strict order":  {strict, [][]int{{0, 100}, {1}, {200}}, ""},
		"strict, overtook": {strict, [][]int{{0, 300}, {1}, {200}}, "job 0 started again after others"},
	} {
		var rows []row
		ran := map[int64][]attempt{}
		for i, starts := range c.starts {
			id := int64(i)
			rows = append(rows, row{ID: id, Queue: c.queue.name, Lane: fmt.Sprint("lane ", i%2), Name: workName, State: "done", Attempts: len(starts)})
			for n, ms := range starts {
				ran[id] = append(ran[id], ended(n+1, ms, doneMark))
			}
		}
		// Why an attempt was repeated is another matter.
		wrong := slices.DeleteFunc(judge([]queue{c.queue}, rows, ran, nil), func(err error) bool { return strings.Contains(err.Error(), "in between") })
		expect(t, name, wrong, c.want)
	}
}

// The row tells of the last attempt only; whichever is earlier is nearer to the truth.
func TestStartIsTheEarlierOfRowAndMark(t *testing.T) {
	early := at(1900)
	r := done(2, 0)
	r.StartedAt = &early
	got := startsOf(r, []attempt{ended(1, 1000, ""), ended(2, 2000, doneMark)})
	if len(got) != 2 || !got[0].Equal(at(1000)) || !got[1].Equal(early) {
		t.Errorf("starts: got %v, want %v and %v", got, at(1000), early)
	}
}

func TestMarksAreReadAsAttempts(t *testing.T) {
	path := filepath.Join(t.TempDir(), marksFile)
	text := "7 1 start 1000\n8 1 start 1500\n7 1 cut 2000\n7 2 start 3000\n7 2 crowd 3001\n7 2 done 4000\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ran, err := readMarks(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := ran[7]; len(got) != 2 || got[0].end != cutMark || got[1].end != doneMark || !got[1].crowd || len(got[1].starts) != 1 {
		t.Errorf("attempts of job 7: got %+v, want one that was cut and one, in a crowd, that was done", got)
	}
	if got := ran[8]; len(got) != 1 || got[0].end != "" {
		t.Errorf("attempts of job 8: got %+v, want one without an end", got)
	}
}
