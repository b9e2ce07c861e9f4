package builtin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
)

// openOver opens a constraint over a vocabulary of 262,144 tokens.
func openOver(t testing.TB, name string, config settings, v host.Vocabulary) *host.Instance {
	t.Helper()
	file, _ := Module(name)
	p, err := newHost(t).Load(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return openWith(t, p, config, v)
}

// masks is the fuel of the mask at the beginning of a text and behind each of its bytes.
func masks(t testing.TB, i *host.Instance, text string) (fuel []int64) {
	t.Helper()
	plan := func() {
		a, burnt, err := i.Call(abi.HookPlan)
		if err != nil || a&^(abi.Mask|abi.Force) != 0 || a == 0 {
			t.Fatalf("behind %d bytes of %q: actions %v, %v, %d fuel", len(fuel), text, a, err, burnt)
		}
		if a == abi.Mask {
			fuel = append(fuel, burnt)
		}
	}
	plan()
	for k, c := range []byte(text) {
		f, l := i.Frame(), i.Layout()
		copy(f[l.In:], []byte{c, 0, 0, 0})
		f[abi.OffInN], f[abi.OffStep] = 1, byte(k)
		if _, _, err := i.Call(abi.HookAccept); err != nil {
			t.Fatal(err)
		}
		plan()
	}
	return fuel
}

func median(of []int64) int64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// TestMasksWithinFuel: over 262,144 tokens the costliest mask of a text, which is that of a
// state that allows nearly every token, stays far within what a hook may use, and the usual
// one costs what copying it does, or, where each character counts, a tenth of a walk.
func TestMasksWithinFuel(t *testing.T) {
	const text = `["an ordinary sentence","with another"`
	for _, c := range []struct {
		name, text   string
		config       settings
		most, median int64
	}{
		{"json-schema", text, settings{"schema": `{"type":"array","items":{"type":"string"}}`}, 12_000_000, 10_000},
		{"json-schema", text, settings{"schema": `{"type":"array","items":{"type":"string","maxLength":100}}`}, 20_000_000, 10_000_000},
		{"json-schema", `"` + strings.Repeat("many characters, ", 60), settings{"schema": `{"type":"string","maxLength":2000}`}, 32_000_000, 10_000_000},
		{"json-schema", `{"a":{"b":["c",-12.5e3,true]},"d":"e"`, settings{"schema": `true`}, 12_000_000, 4_000_000},
		{"grammar", "{some words, and more", settings{"gbnf": `root ::= "{" [^}]* "}"`}, 16_000_000, 10_000},
		{"regex", "words of small letters", settings{"pattern": `[a-z ]+`}, 5_000_000, 10_000},
		{"regex", "words of small letters", settings{"pattern": `[a-z ]{1,200}`}, 10_000_000, 5_000_000},
		{"regex", "anything, and more", settings{"pattern": `.*`}, 10_000_000, 10_000},
	} {
		i := openOver(t, c.name, c.config, large)
		start := time.Now()
		got := masks(t, i, c.text)
		most, half := slices.Max(got), median(got)
		t.Logf("%s %v: at most %d fuel, median %d of %d masks, %v", c.name, c.config, most, half, len(got), time.Since(start))
		if most > c.most || half > c.median {
			t.Errorf("%s %v: a mask takes up to %d fuel and half of them up to %d; want %d and %d", c.name, c.config, most, half, c.most, c.median)
		}
	}
	// The partner: tokens that hold an escape, in which no run goes on, leave nothing to pass
	// over.
	odd := manyVocab{slices.Clone(large.pieces)}
	for id := 256; id < many-1; id++ {
		odd.pieces[id] = append([]byte(`\n`), odd.pieces[id]...)
	}
	i := openOver(t, "json-schema", needed["json-schema"], odd)
	f, l := i.Frame(), i.Layout()
	for k, c := range []byte(`["`) {
		copy(f[l.In:], []byte{c, 0, 0, 0})
		f[abi.OffInN], f[abi.OffStep] = 1, byte(k)
		if _, _, err := i.Call(abi.HookAccept); err != nil {
			t.Fatal(err)
		}
	}
	if _, fuel, _ := i.Call(abi.HookPlan); fuel < 12_000_000 {
		t.Errorf("a vocabulary that lends itself to little takes %d fuel: the test sees nothing", fuel)
	}
}

// TestMasksAreWhatTokensDo: a token is in a mask exactly where its bytes can be taken one by
// one, in states that take runs of characters of all kinds, of any and of limited length.
func TestMasksAreWhatTokensDo(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	parts := []string{"a", "e", "in", "th", "Er", "ON", " s", "  ", "1", "70", ", ", ".", "-", "\"", "\\", "\\n", ": ", "{", "}", "[", "]", "ß", "字", "😀", "\n", "\t", "\x7f", "\x01", "_", "(", "'", "=", "<", "\xe5", "\xe5\xad", "\xf0\x9f", "\x80", "\xc0", "null", "true"}
	var pieces []string
	for range 1200 {
		s := ""
		for range 1 + r.IntN(5) {
			s += parts[r.IntN(len(parts))]
		}
		pieces = append(pieces, s)
	}
	slices.Sort(pieces)
	pieces = slices.Compact(pieces)
	for n := range 40 { // long ones
		pieces = append(pieces, fmt.Sprintf("%0*d", 10*n+1, 0), fmt.Sprintf("%*s", 10*n+2, "x"))
	}
	v := of(pieces...)
	v.noEncode = true
	for _, c := range []struct {
		name   string
		config settings
		texts  []string
	}{
		{"json-schema", settings{"schema": `{"type":"array","items":{"type":"string"}}`}, []string{``, `["`, `["a\`, "[\"\xe5", `["a","`, `["a"`}},
		{"json-schema", settings{"schema": `{"type":"string","maxLength":40}`}, []string{`"`, `"abcdefghi`, `"012345678901234567890123456789012345`}},
		{"json-schema", settings{"schema": `{"type":"string","minLength":3,"maxLength":6}`}, []string{`"`, `"a`, `"abcd`, `"abcdef`}},
		{"json-schema", settings{"schema": `{"type":"array","items":{"type":"integer"}}`}, []string{`[`, `[1`, `[1,`}},
		{"regex", settings{"pattern": `[a-f ]{1,9}x?`}, []string{``, `a`, `abcdefab`}},
		{"regex", settings{"pattern": `[^,\s]+(,[^,\s]+){2,}`}, []string{``, `a`, `a,b`, `a,b,c`}},
		{"regex", settings{"pattern": `[ß-字]*[a-z ]*\n?`}, []string{``, `ß`, `a`}},
		{"regex", settings{"pattern": `.*`}, []string{``, "\xf0"}},
		{"grammar", settings{"gbnf": `root ::= ([a-z] [0-9])* "." | [^x]+`}, []string{``, `a`, `a1`}},
	} {
		for _, text := range c.texts {
			g := newGuest(t, c.name, c.config, v)
			for k := range len(text) {
				g.accept(k, uint32(text[k]))
			}
			if a := g.call("plan"); a != 2 {
				t.Fatalf("%s %v behind %q: actions %d", c.name, c.config, text, a)
			}
			mask := make([]bool, v.size)
			for _, id := range g.mask() {
				mask[id] = true
			}
			for id := range uint32(v.size - 1) {
				if taken := g.takes(id); mask[id] != taken {
					t.Errorf("%s %v behind %q: token %d, %.40q, is taken: %v, in the mask: %v", c.name, c.config, text, id, v.pieces[id], taken, mask[id])
				}
			}
		}
	}
}

// takes tells whether the accept hook takes a token, and takes it back.
func (g *guest) takes(id uint32) bool {
	g.putWords(g.part.in, []uint32{id})
	g.put(0x78, g.part.in-g.frame)
	g.put(0x7C, 1)
	g.put(0xC4, 1)
	res, err := g.m.ExportedFunction("gg_accept").Call(ctx, uint64(g.frame))
	if err != nil {
		g.t.Fatal(err)
	}
	g.call("rollback")
	return int32(res[0]) >= 0
}
