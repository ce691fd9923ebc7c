package jobs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"queuekeeper/internal/testdb"
)

func TestArgsAreRefusedWithTheReason(t *testing.T) {
	deep := func(d int) string { return strings.Repeat("[", d) + strings.Repeat("]", d) }
	for _, c := range []struct{ args, want string }{
		{``, `not JSON: empty`},
		{` `, `not JSON at byte 1: unexpected end of JSON input`},
		{`{'a':1}`, `not JSON at byte 2: invalid character '\'' looking for beginning of object key string`},
		{`{"a":1} x`, `not JSON at byte 9: invalid character 'x' after top-level value`},
		{`NaN`, `not JSON at byte 1: invalid character 'N' looking for beginning of value`},
		{"{\"a\":\"\xff\"}", `not valid UTF-8 at byte 7`},
		{"\xff\xfe{\x00}\x00", `not valid UTF-8 at byte 1`},
		{"\xed\xa0\x80", `not valid UTF-8 at byte 1`},
		{"\ufeff{}", `starts with a byte order mark; JSON has none`},
		{"{\"a\":\"\x00\"}", `not JSON at byte 7: invalid character '\x00' in string literal`},
		{`{"a":"x\u0000y"}`, `NUL (\u0000) at .a: Postgres cannot store it`},
		{`{"a\u0000":1}`, `NUL (\u0000) at ."a\u0000": Postgres cannot store it`},
		{`["\u0000"]`, `NUL (\u0000) at [0]: Postgres cannot store it`},
		{`"\u0000"`, `NUL (\u0000) at .: Postgres cannot store it`},
		{`{"a":{"x":[1,2]},"b":[{},[1,{"c d":"\u0000"}]]}`, `NUL (\u0000) at .b[1][1]."c d": Postgres cannot store it`},
		{`{"s":"\ud800"}`, `lone surrogate (\ud800) at .s: half a character`},
		{`{"s":"\udc59"}`, `lone surrogate (\udc59) at .s: half a character`},
		{`{"s":"\ud83d\ud83d\ude00"}`, `lone surrogate (\ud83d) at .s: half a character`},
		{`{"s":"\ud83dx"}`, `lone surrogate (\ud83d) at .s: half a character`},
		{deep(1001), `nested deeper than 1000 levels at byte 1001`},
		{deep(20000), `nested deeper than 1000 levels at byte 1001`},
		{strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001), `nested deeper than 1000 levels at byte 5001`},
		{`{"n":1e131073}`, `number at .n: more digits than Postgres can hold (131072 before the point, 16383 after)`},
		{`{"n":1e-16384}`, `number at .n: more digits than Postgres can hold (131072 before the point, 16383 after)`},
		{`{"n":1E99999999999999999999}`, `number at .n: the exponent 99999999999999999999 is beyond what Postgres can hold`},
		{`"` + strings.Repeat("x", MaxArgsSize-1) + `"`, `1048577 bytes as stored; the limit is 1048576`},
		{"[" + strings.Repeat("1e100000,", 10) + "1e100000]", `1100033 bytes as stored; the limit is 1048576`},
	} {
		err := CheckArgs([]byte(c.args))
		if err == nil || err.Error() != c.want {
			t.Errorf("CheckArgs(%.60q) = %v, want %q", c.args, err, c.want)
		}
	}
}

func TestAGoValueWithBytesThatAreNotUTF8IsRefused(t *testing.T) {
	if _, err := argsText(map[string]string{"a": "\xff"}); err == nil {
		t.Error(`argsText of "\xff" = nil, want an error: encoding/json would store U+FFFD`)
	}
	for _, fine := range []string{"\ufffd", `\ufffd`} {
		if _, err := argsText(map[string]string{"a": fine}); err != nil {
			t.Errorf("argsText of %+q = %v, want nil", fine, err)
		}
	}
}

// argsSeeds are accepted, or so close to it that a fuzzer starts well from them.
var argsSeeds = []string{
	`{}`, `null`, `[]`, `[1, 2]`, `"s"`, `5`, `true`, `{"a":1,"a":2}`, ` { "a" : [ 1 , { } ] } `,
	`{"id":3889108265204450030,"n":9007199254740993,"d":0.1000000000000000055,"h":1e400}`, `{"h":1e100000}`,
	`-0`, `-0.0e5`, `0e131071`, `1e131071`, `10e131070`, `1e-16383`, `0.1e-16382`, `1.50e1`, `0.05e2`, `-1.5E+3`,
	`{"s":"\ud83d\ude00"}`, `"\b\f\n\r\t\"\\\/\u0001\u001f\u007f\u0022\u005c\u000a\u00e9\uffff\\u0000"`,
	"\"\u2028\u202e\x7f\U0010ffff é\"", `{"":{"":""}}`,
	strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
	strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
}

func TestSeedsAreAccepted(t *testing.T) {
	for _, args := range argsSeeds {
		if err := CheckArgs([]byte(args)); err != nil {
			t.Errorf("CheckArgs(%.60q) = %v, want nil", args, err)
		}
	}
}

// What CheckArgs accepts, Postgres stores, in no more bytes than were counted.
func FuzzAcceptedArgsAreStored(f *testing.F) {
	for _, args := range argsSeeds {
		f.Add([]byte(args))
	}
	conn := testdb.Connect(f, testdb.New(f))
	f.Fuzz(func(t *testing.T, args []byte) {
		if CheckArgs(args) != nil {
			return
		}
		var stored int
		err := conn.QueryRow(context.Background(),
			`select octet_length($1::text::jsonb::text)`, string(args)).Scan(&stored)
		if err != nil {
			t.Fatalf("Postgres refuses %.200q: %v", args, err)
		}
		w := argsWalk{text: args}
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		if stored > w.size {
			t.Errorf("%.200q: stored in %d bytes, counted %d", args, stored, w.size)
		}
	})
}

func ExampleCheckArgs() {
	fmt.Println(CheckArgs([]byte(`{"to": ["ann@example.org", "b\u0000b"]}`)))
	// Output: NUL (\u0000) at .to[1]: Postgres cannot store it
}
