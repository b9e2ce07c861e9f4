package builtin

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ganglion/plugins/js"
	"ganglion/plugins/sdk/sdktest"
)

// TestExamplesAgree: the SDKs' example does the same in every language, and what its
// formula says. It runs over wazero's own WASI; that it begins over the host's, the test
// TestEveryLanguageLoads of plugins/host shows.
func TestExamplesAgree(t *testing.T) {
	for _, lang := range sdktest.Languages() {
		t.Run(lang, func(t *testing.T) {
			file := sdktest.Example(t, lang)
			if _, answer := openedFile(t, file, settings{"a": 0}, of()); answer != 1 {
				t.Errorf("switched off: gg_open returns %d", answer)
			}
			g, answer := openedFile(t, file, settings{"a": 0.3}, of())
			if answer != 0 {
				t.Fatalf("gg_open returns %d: %s", answer, g.fault)
			}
			r := rand.New(rand.NewPCG(9, 10))
			for round := range 20 {
				logits := make(row, 1+r.IntN(200))
				for i := range logits {
					logits[i] = float32(r.NormFloat64() * 3)
				}
				sum, best := 0.0, math.Inf(-1)
				for _, l := range logits {
					sum += math.Exp(float64(l))
					best = max(best, float64(l))
				}
				var want []uint32
				top := math.Exp(best) / sum
				for i, l := range logits {
					if p := math.Exp(float64(l)) / sum; p >= 0.3*top*top || float64(l) == best {
						want = append(want, uint32(i))
					}
				}
				if got := survivors(g, logits); !slices.Equal(got, want) {
					t.Fatalf("round %d: %d tokens stay, want %d", round, len(got), len(want))
				}
			}
		})
	}
}

// TestScript: what scripts have besides the frame's numbers.
func TestScript(t *testing.T) {
	open := func(body string) (*guest, int32) {
		file, err := js.Module([]byte(`/* ganglion {"abi":"1.0","name":"x","version":"1.0.0","slot":"text","hooks":["text"]} */` + body))
		if err != nil {
			t.Fatal(err)
		}
		return openedFile(t, file, settings{"word": "é"}, of("né"))
	}
	for body, want := range map[string]string{
		`function open() { throw new Error("no") }`: "Error: no",
		`let x = ;`: "SyntaxError: unexpected token in expression: ';'",
	} {
		if g, answer := open(body); answer >= 0 || g.fault != want {
			t.Errorf("%s: gg_open returns %d, %q, want %q", body, answer, g.fault, want)
		}
	}
	g, answer := open(`let word; function open(r) { word = r.config.word }
		function text(f) { return f.say(f.textIn.replaceAll("e", word) + tokenText(256) + encode("né")[0] + endsText(257)) }`)
	if answer != 0 {
		t.Fatalf("gg_open returns %d: %s", answer, g.fault)
	}
	if got, want := g.say("hé he 字"), "hé hé 字né256true"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	g, _ = open(`function text(f) { f.edit.x.y }`)
	g.m.Memory().WriteUint32Le(g.frame+4, 1<<18)
	if res, err := g.m.ExportedFunction("gg_text").Call(ctx, uint64(g.frame)); err != nil || int32(res[0]) != -1 || !strings.HasPrefix(g.fault, "TypeError: ") {
		t.Errorf("a script that throws: %v, %v, %q", res, err, g.fault)
	}
}
