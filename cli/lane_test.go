package cli

import (
	"testing"
	"time"
)

func TestALaneIsInQuotesWhereOneWouldNotSeeIt(t *testing.T) {
	for lane, want := range map[string]string{
		"default": "default", "Ann & Co": "Ann & Co", "é🙂": "é🙂", `a\nb`: `a\nb`, `a"b`: `a"b`,
		" ": `" "`, "a ": `"a "`, " a": `" a"`, "a  b": `"a  b"`, "\n": `"\n"`, "a\tb": `"a\tb"`, "a\u00a0b": `"a\u00a0b"`, "\u202e": `"\u202e"`,
		`"a"`: `"\"a\""`, "\xff": `"\xff"`,
	} {
		if got := laneText(lane); got != want || shown(got) != got {
			t.Errorf("lane %q: got %s, want %s", lane, got, want)
		}
	}
}

func TestASpanHasDays(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", day - time.Second: "23h59m59s", day: "1d", 30 * day: "30d", 100 * day: "100d",
		day + time.Second: "1d1s", 30*day - time.Second: "29d23h59m59s", 26 * time.Hour: "1d2h0m0s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
