package builtin

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ganglion/plugins/host"
)

// openToDoubt are the walks whose classes leave out characters above 0x7F: there the
// oracle refuses every first byte that could begin one of them, though others begin so too.
var openToDoubt = map[string]bool{"list 0": true, "list 1": true}

// TestGrammarAsInLlamaCpp: at every step of walks through grammars the same tokens of
// 3,000 are allowed. The oracle also lets bytes pass that no UTF-8 holds (F5 to FF).
func TestGrammarAsInLlamaCpp(t *testing.T) {
	b, err := os.ReadFile("testdata/llama.cpp/grammar.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Pieces []string
		Cases  []struct {
			Name, Grammar string
			Steps         []struct {
				Allowed string
				Token   *uint32
			}
		}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	v := &vocabulary{size: len(f.Pieces) + 1, pieces: map[uint32]string{}, eog: []uint32{uint32(len(f.Pieces))}, encoded: map[string][]uint32{}}
	for i, p := range f.Pieces {
		s, err := hex.DecodeString(p)
		if err != nil {
			t.Fatal(err)
		}
		v.pieces[uint32(i)] = string(s)
	}
	v.noEncode = true // a mask at each step, and nothing forced
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			g := newGuest(t, "grammar", settings{"gbnf": c.Grammar}, v)
			for k, s := range c.Steps {
				if a := g.call("plan"); a != 2 {
					t.Fatalf("step %d: actions %d", k, a)
				}
				got := g.mask()
				var want []uint32
				for i := range v.size {
					digit := strings.IndexByte("0123456789abcdef", s.Allowed[i/4])
					if digit>>(i%4)&1 == 1 {
						want = append(want, uint32(i))
					}
				}
				more, less := difference(got, want), difference(want, got)
				if slices.ContainsFunc(g.texts(more), func(s string) bool { return utf8.ValidString(s) || !openToDoubt[c.Name] }) ||
					slices.ContainsFunc(g.texts(less), func(s string) bool {
						return !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError }) || s[len(s)-1] < 0xF5
					}) {
					t.Fatalf("step %d: %d allowed, want %d; too many %q, too few %q", k, len(got), len(want), g.texts(more), g.texts(less))
				}
				if s.Token != nil {
					g.accept(k, *s.Token)
				}
			}
		})
	}
}

// difference lists what a has and b lacks.
func difference(a, b []uint32) []uint32 {
	var out []uint32
	for _, x := range a {
		if !slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// takes tells whether a constraint lets a text be written byte by byte, to its end.
func takes(g *guest, text string) bool {
	for i := range len(text) {
		if g.call("plan") != 2 || !slices.Contains(g.mask(), uint32(text[i])) {
			return false
		}
		if g.accept(i, uint32(text[i]))&256 != 0 {
			return i == len(text)-1
		}
	}
	return g.call("plan") == 2 && slices.Contains(g.mask(), g.vocab.eog[0])
}

// wander writes what a constraint allows, at random, until it ends or is long.
func wander(g *guest, r *rand.Rand, most int) (text string, whole bool) {
	for step := 0; step < most; step++ {
		a := g.call("plan")
		if a == 64 {
			ids := g.forced()
			for _, id := range ids {
				text += g.vocab.pieces[id]
			}
			if g.accept(step, ids...)&256 != 0 {
				return text, true
			}
			continue
		}
		allowed := g.mask()
		if len(allowed) == 0 {
			g.t.Fatalf("nothing is allowed behind %q", text)
		}
		if slices.Contains(allowed, g.vocab.eog[0]) && (r.IntN(3) == 0 || step > most/2) {
			return text, true
		}
		id := allowed[r.IntN(len(allowed))]
		for n := 0; n < 6 && step > most/3; n++ { // towards an end
			if s := g.vocab.pieces[id]; strings.ContainsAny(s, "\"]}") {
				break
			}
			id = allowed[r.IntN(len(allowed))]
		}
		if id == g.vocab.eog[0] {
			continue
		}
		text += g.vocab.pieces[id]
		if g.accept(step, id)&256 != 0 {
			return text, true
		}
	}
	return text, false
}

func TestRegex(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for pattern, texts := range map[string]struct{ yes, no []string }{
		`^(cat|dog)s?$`:          {[]string{"cat", "dogs"}, []string{"ca", "catss", ""}},
		`\d{3}-\d{4}`:            {[]string{"555-1234"}, []string{"555-123", "5555-1234"}},
		`[A-Z][a-z]*( [A-Z]\.)?`: {[]string{"Ada", "Ada B."}, []string{"ada", "Ada B"}},
		`[^,\s]+(,[^,\s]+){2,}`:  {[]string{"a,b,c", "é,ß,字"}, []string{"a,b", "a,,b"}},
		`(?:a|b)*?c+\.`:          {[]string{"abac.", "cc."}, []string{"ab.", "c"}},
		`\w+@\w+\.(com|org)`:     {[]string{"me@x.org"}, []string{"me@x.net"}},
		`x{2,3}y{0}z?`:           {[]string{"xx", "xxxz"}, []string{"x", "xxy"}},
		`[а-я]{2,4}`:             {[]string{"да", "небо"}, []string{"д", "abc"}},
		`.+`:                     {[]string{"x", "日本"}, []string{"", "a\nb"}},
		`\x41\u00e9[\]\-a]`:      {[]string{"Aé]", "Aé-"}, []string{"Aéb"}},
	} {
		oracle := regexp.MustCompile(`^(?:` + strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$"), `\u00e9`, "é") + `)$`)
		v := of("at", "og", "34", "é", "字", " B.", "ab")
		v.noEncode = true
		for _, s := range texts.yes {
			if !oracle.MatchString(s) || !takes(newGuest(t, "regex", settings{"pattern": pattern}, v), s) {
				t.Errorf("%s: %q is refused", pattern, s)
			}
		}
		for _, s := range texts.no {
			if oracle.MatchString(s) || takes(newGuest(t, "regex", settings{"pattern": pattern}, v), s) {
				t.Errorf("%s: %q is taken", pattern, s)
			}
		}
		for range 5 {
			g := newGuest(t, "regex", settings{"pattern": pattern}, v)
			if s, whole := wander(g, r, 60); whole && !oracle.MatchString(s) {
				t.Errorf("%s: %q was written", pattern, s)
			}
		}
	}
}

var schemas = map[string]struct {
	schema  string
	yes, no []string
}{
	"object": {`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"]}`,
		[]string{`{"name":"Ada","age":36}`, `{ "name": "", "age": -0 }`, "{\n  \"name\": \"é\\n\\u00e9\",\n  \"age\": 1\n}"},
		[]string{`{"name":"Ada"}`, `{"age":36,"name":"Ada"}`, `{"name":"Ada","age":01}`, `{"name":"A"da","age":1}`, `{"name":"Ada","age":1,"x":1}`}},
	"optional": {`{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"boolean"},"c":{"enum":[1,"x",[2]]}},"required":["b"]}`,
		[]string{`{"a":null,"b":true}`, `{"b":false,"c":[2]}`, `{"b":true}`}, []string{`{}`, `{"a":null}`, `{"b":true,}`, `{,"b":true}`, `{"b":true,"c":2}`}},
	"array": {`{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":3}`, []string{`[1,2.5]`, `[1e3, -2, 0.25]`}, []string{`[1]`, `[1,2,3,4]`, `[1,]`, `[.5,1]`}},
	"any":   {`true`, []string{`{"a":[1,{"b":null}]}`, `"x"`, `[]`, `-12.5e-3`}, []string{`{a:1}`, `nul`, `[1 2]`}},
	"recursive": {`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}}}`,
		[]string{`{"v":1,"next":{"v":2,"next":null}}`}, []string{`{"v":1,"next":{"v":2}}`, `{"v":1,"next":1}`}},
	"lengths": {`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"éab"`, `"\n\u0041"`}, []string{`"a"`, `"abcd"`}},
	"pattern": {`{"type":"string","pattern":"^[A-Z]{2}\"\\d+\\\\$"}`, []string{`"AB\"12\\"`}, []string{`"AB"12\\"`, `"A\"1\\"`, `"AB\"\\"`}},
	"format": {`{"type":"object","properties":{"d":{"type":"string","format":"date"},"u":{"type":"string","format":"uuid"},"t":{"type":"string","format":"date-time"}},"required":["d","u","t"]}`,
		[]string{`{"d":"2024-02-28","u":"123e4567-e89b-12d3-a456-426614174000","t":"2024-01-02T03:04:05Z"}`}, []string{`{"d":"2024-13-01","u":"x","t":""}`}},
	"bounds":   {`{"type":"integer","minimum":-12,"maximum":305}`, []string{`-12`, `-1`, `0`, `9`, `10`, `99`, `100`, `299`, `300`, `305`}, []string{`-13`, `306`, `-0`, `1000`, `00`}},
	"positive": {`{"type":"integer","exclusiveMinimum":6,"exclusiveMaximum":1024}`, []string{`7`, `42`, `1023`}, []string{`6`, `1024`, `1024`, `-7`}},
	"types":    {`{"type":["integer","null","string"]}`, []string{`1`, `null`, `"x"`}, []string{`true`, `1.5`}},
	"map":      {`{"type":"object","additionalProperties":{"type":"boolean"}}`, []string{`{}`, `{"a":true,"b":false}`}, []string{`{"a":1}`}},
	"mixed":    {`{"type":"object","properties":{"k":{"const":"v"}},"required":["k"],"additionalProperties":true}`, []string{`{"k":"v"}`, `{"k":"v","z":[1]}`}, []string{`{"z":1}`}},
}

// TestJSONSchema: texts that a schema allows can be written and others cannot, and what is
// written at random is valid to another implementation of JSON Schema.
func TestJSONSchema(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, c := range schemas {
		t.Run(name, func(t *testing.T) {
			oracle := compileSchema(t, c.schema)
			config := settings{"schema": c.schema}
			v := of(`{"`, `":`, `"name`, `", "`, `null`, `true`, "\n ", `"}`, `]}`, "é", "12")
			v.noEncode = true
			for _, s := range c.yes {
				if !takes(newGuest(t, "json-schema", config, v), s) {
					t.Errorf("%s is refused", s)
				}
				if !valid(oracle, s) {
					t.Errorf("%s is no case: the oracle refuses it", s)
				}
			}
			for _, s := range c.no {
				if takes(newGuest(t, "json-schema", config, v), s) {
					t.Errorf("%s is taken", s)
				}
			}
			v.noEncode = false
			ended := 0
			for range 12 {
				s, whole := wander(newGuest(t, "json-schema", config, v), r, 400)
				if !whole {
					continue
				}
				if ended++; !valid(oracle, s) {
					t.Errorf("%s was written", s)
				}
			}
			if ended == 0 {
				t.Error("no text came to an end")
			}
		})
	}
}

func compileSchema(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("schema.json")
}

func valid(s *jsonschema.Schema, text string) bool {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	return err == nil && s.Validate(v) == nil
}

// TestConstraintsRefuse: what is not understood is an error, never ignored.
func TestConstraintsRefuse(t *testing.T) {
	for i, c := range []struct {
		plugin, fault string
		config        settings
	}{
		{"grammar", "there is no rule root", settings{"gbnf": `start ::= "x"`}},
		{"grammar", "a rule is used that is not there", settings{"gbnf": `root ::= other`}},
		{"grammar", "the grammar is left-recursive or too ambiguous", settings{"gbnf": `root ::= root "x" | "y"`}},
		{"grammar", "a text is not closed", settings{"gbnf": `root ::= "x`}},
		{"grammar", "a class is not closed", settings{"gbnf": `root ::= [x`}},
		{"grammar", "nothing to repeat", settings{"gbnf": `root ::= *`}},
		{"grammar", "a repetition of more than 4000", settings{"gbnf": `root ::= "x"{1,1000000}`}},
		{"grammar", "tokens in a grammar are not supported", settings{"gbnf": `root ::= <think>`}},
		{"regex", "a group is not closed", settings{"pattern": `(a`}},
		{"regex", `\b, \p and back references are not supported`, settings{"pattern": `a\b`}},
		{"regex", "groups with ? other than (?: are not supported", settings{"pattern": `(?=a)`}},
		{"json-schema", "a keyword of the schema is not supported", settings{"schema": settings{"type": "object", "patternProperties": settings{}}}},
		{"json-schema", "the schema is not JSON", settings{"schema": `{"type":"string",}`}},
		{"json-schema", "the schema is not JSON", settings{"schema": `{"type":"string"} x`}},
		{"json-schema", "a reference leads nowhere", settings{"schema": settings{"$ref": "#/$defs/x"}}},
		{"json-schema", "bounds of numbers are not supported, of integers they are", settings{"schema": settings{"type": "number", "minimum": 1}}},
		{"json-schema", "a required property is not among the properties", settings{"schema": settings{"type": "object", "required": []string{"x"}}}},
	} {
		t.Run(fmt.Sprintf("%d %s", i, c.plugin), func(t *testing.T) {
			if fault := openFault(t, c.plugin, c.config); fault != c.fault {
				t.Errorf("%v: %q, want %q", c.config, fault, c.fault)
			}
		})
	}
}

// TestJumpForward: what must come is forced but for its last token, and rollback returns.
func TestJumpForward(t *testing.T) {
	v := of(`{"`, `na`, `me`, `": `, `"`)
	g := newGuest(t, "json-schema", settings{"schema": json.RawMessage(`{"type":"object","properties":{"name":{"const":12}},"required":["name"]}`)}, v)
	g.call("plan")
	g.accept(0, '{')
	g.accept(1, '"')
	if a := g.call("plan"); a != 64 {
		t.Fatalf("actions %d", a)
	}
	var text string
	for _, id := range g.forced() {
		text += v.pieces[id]
	}
	if text != "name" && text != `name"` {
		t.Errorf("forced %q", text)
	}
	before := g.forced()
	g.accept(2, before...)
	g.put(0xC4, uint32(len(before)))
	g.call("rollback")
	if a := g.call("plan"); a != 64 || !slices.Equal(g.forced(), before) {
		t.Errorf("behind a rollback: actions %d, %v, want %v", a, g.forced(), before)
	}
}

// TestOpeningHardConstraints: what a request can write into its configuration takes a small
// part of the fuel of opening, for whoever could make a constraint run out of it thrice would
// take it from everybody.
func TestOpeningHardConstraints(t *testing.T) {
	var classes strings.Builder // 900 sets that tell small letters apart last
	for i := range 900 {
		fmt.Fprintf(&classes, "[A-%c%c]", 'B'+i%24, rune(0xA1+i/24))
	}
	for c := 'a'; c <= 'z'; c++ {
		fmt.Fprintf(&classes, "[%c]", c)
	}
	for _, c := range []struct {
		name   string
		config settings
	}{
		{"regex", settings{"pattern": classes.String()}},
		{"grammar", settings{"gbnf": "root ::= " + classes.String() + strings.Repeat(` "abcdefghijklmnopqrstuvwxyz"`, 1000)}},
		{"json-schema", settings{"schema": `{"enum":["` + strings.Repeat("abcdefghijklmnopqrstuvwxyz", 1200) + `"]}`}},
	} {
		open := func(fuel int) error {
			p, err := newHost(t).Load(ctx, withOpenFuel(t, c.name, fuel))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			raw, err := json.Marshal(c.config)
			if err == nil {
				raw, err = p.Manifest().Schema.Fill(raw)
			}
			if err != nil {
				t.Fatal(err)
			}
			i, err := p.Open(t.Context(), host.Open{Config: raw, Model: host.Model{Name: "m", Vocab: many, Context: 8192}, Services: host.Services{Vocab: large}})
			if i != nil {
				_ = i.Close()
			}
			return err
		}
		if err := open(100_000_000); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var e *host.Error
		if err := open(6_000_000); !errors.As(err, &e) || e.Code != host.CodeFuel {
			t.Errorf("%s: with a small part of that %v: the test sees nothing", c.name, err)
		}
	}
}
