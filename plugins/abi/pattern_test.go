package abi

import (
	"fmt"
	"ganglion/plugins/wasm/wasmtest"
	"regexp/syntax"
	"strings"
	"testing"
	"time"
)

// TestProgramSize: it is never below what the compiler makes, and near it where nothing
// is simplified away.
func TestProgramSize(t *testing.T) {
	for _, expr := range []string{
		"", "a", "abc", "a*", "a+?", "a?", "(a)(b)", "a|bc|d", "[a-z]+x", "(?i)ab", "a{3}", "a{2,5}", "a{2,}", "(ab|c){3,9}x", "a{0}", "a{0,1}",
		"(a{10}b){10}", "((a{1,9}){1,9}){1,9}", `^\bx$`, `\pL{100}`, "(?:a{0,0}|b){1000}", "(x+x+)+y", ".{0,1000}", "(?s:.)", "a||b", "(|a)*", "(a*)+", "(?:){7}",
	} {
		n, err := ProgramSize(expr)
		if err != nil {
			t.Fatalf("%q: %v", expr, err)
		}
		re, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if have := len(prog.Inst); n < have || n > 4*have+8 {
			t.Errorf("%q: %d, the compiler makes %d", expr, n, have)
		}
	}
	if _, err := ProgramSize("("); err == nil {
		t.Error("( is an expression")
	}
}

// quick runs f, which must not take long: without the bounds these cases take from ten
// seconds to hours.
func quick(t *testing.T, what string, f func() error) {
	t.Helper()
	begin := wasmtest.CPUTime()
	err := f()
	if took := wasmtest.CPUTime() - begin; err == nil || took > 2*time.Second {
		t.Errorf("%s: %v after %v", what, err, took)
	}
}

func TestPatternsAreBounded(t *testing.T) {
	parse := func(text string) func() error {
		return func() error { _, err := ParseSchema([]byte(text)); return err }
	}
	quick(t, "a million instructions", parse(`{"pattern":"(`+strings.Repeat("x", 1000)+`){1000}"}`))
	quick(t, "twenty bytes", parse(`{"pattern":"((a{100}){100}){100}"}`))
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf(`"p%d":{"pattern":"(%s){40}"}`, i, strings.Repeat("x", 45)))
	}
	quick(t, "many patterns", parse(`{"properties":{`+strings.Join(many, ",")+`}}`))
	heavy := `"pattern":"^(x{0,20}){0,20}$"`
	quick(t, "a long default", parse(`{`+heavy+`,"default":"`+strings.Repeat("x", 60_000)+`!"}`))
	var defaults []string
	for i := range 9 {
		defaults = append(defaults, fmt.Sprintf(`"p%d":{"pattern":"^(x{0,20}){0,20}$","default":"%s"}`, i, strings.Repeat("x", 3000)))
	}
	quick(t, "many defaults", parse(`{"properties":{`+strings.Join(defaults, ",")+`}}`))
	fill := func(schema, config string) func() error {
		s, err := ParseSchema([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		return func() error { _, err := s.Fill([]byte(config)); return err }
	}
	quick(t, "a long text", fill(`{"properties":{"a":{`+heavy+`}}}`, `{"a":"`+strings.Repeat("x", 1_000_000)+`!"}`))
	quick(t, "many texts", fill(`{"properties":{"a":{"items":{`+heavy+`}}}}`, `{"a":[`+strings.Repeat(`"xxxxxxxxxx",`, 70_000)+`"x"]}`))
	var list, members []string
	for i := range 1000 {
		list = append(list, fmt.Sprint(i+10))
		members = append(members, fmt.Sprintf(`"member%d":{}`, i))
	}
	quick(t, "many values of a long list", fill(`{"properties":{"a":{"items":{"enum":[`+strings.Join(list, ",")+`,1]}}}}`, `{"a":[`+strings.Repeat(`1,`, 400_000)+`1]}`))
	quick(t, "many objects of many members", fill(`{"properties":{"a":{"items":{"properties":{`+strings.Join(members, ",")+`}}}}}`, `{"a":[`+strings.Repeat(`{},`, 300_000)+`{}]}`))
	for what, f := range map[string]func() error{
		"a pattern":   fill(`{"properties":{"a":{"pattern":"^[a-z]{1,20}(,[a-z]{1,20})*$"}}}`, `{"a":"`+strings.Repeat("word,", 10_000)+`word"}`),
		"many values": fill(`{"properties":{"a":{"items":{"enum":["red","green"]}}}}`, `{"a":[`+strings.Repeat(`"red",`, 100_000)+`"green"]}`),
	} {
		if err := f(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
