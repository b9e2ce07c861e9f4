package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/tokenizer"
	"ganglion/plugins/builtin"
	"ganglion/plugins/host"
)

// shelf is all built-in plugins as a source of plugins.
type shelf map[string]pluginFile

func (s shelf) Find(ctx context.Context, name, versions string) (appliance.Plugin, error) {
	f, ok := s[name]
	if !ok {
		return nil, appliance.ErrNoPlugin
	}
	return f.Find(ctx, name, versions)
}

func (shelf) Inline(ctx context.Context, code string) (appliance.Plugin, error) {
	return pluginFile{}.Inline(ctx, code)
}

func (shelf) Ended(*appliance.PluginReport) {}

// newShelf loads the built-in plugins.
func newShelf(t *testing.T) shelf {
	t.Helper()
	r, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	names, err := fs.Glob(builtin.Files(), "*.wasm")
	if err != nil {
		t.Fatal(err)
	}
	all := shelf{}
	for _, n := range names {
		file, err := fs.ReadFile(builtin.Files(), n)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Load(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		all[p.Manifest().Name] = pluginFile{p, slog.New(slog.DiscardHandler)}
	}
	return all
}

// stand is a service with all built-in plugins, and the model that it runs once more, to ask
// what it says itself.
type stand struct {
	t     *testing.T
	s     *appliance.Service
	model *engine.Engine
}

const standPrompt = "The quick brown fox"

// ask makes a text of up to n tokens with plugins: JSON in the order of the request.
func (d *stand) ask(temperature float64, seed int64, n int64, plugins ...string) *appliance.Result {
	d.t.Helper()
	r := &appliance.Request{ID: appliance.NewID(), Prompt: standPrompt, Temperature: &temperature, Seed: &seed, MaxTokens: &n, Plugins: []appliance.PluginChoice{}}
	for _, p := range plugins {
		name, config, _ := strings.Cut(p, " ")
		r.Plugins = append(r.Plugins, appliance.PluginChoice{Name: name, Config: []byte(config), OnError: "fail"})
	}
	c, err := d.s.Start(d.t.Context(), r)
	if err != nil {
		d.t.Fatalf("%q: %v", plugins, err)
	}
	defer c.Close()
	got, err := c.Wait(d.t.Context())
	if err != nil {
		d.t.Fatalf("%q: %v", plugins, err)
	}
	return got
}

// said is what the model says at a token of a text: the logits of its step and their
// probabilities, and the token's.
type said struct {
	logits, p []float64
	id        int32
}

// says asks the model about each token of a text.
func (d *stand) says(r *appliance.Result) (steps []said) {
	d.t.Helper()
	ids := d.model.Tokenizer().Encode(standPrompt, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	for _, token := range r.Tokens {
		x := said{id: token.ID}
		most, sum := math.Inf(-1), 0.0
		for _, l := range rowOf(d.t, d.model, ids) {
			x.logits = append(x.logits, float64(l))
			most = max(most, float64(l))
		}
		for _, l := range x.logits {
			x.p = append(x.p, math.Exp(l-most))
			sum += math.Exp(l - most)
		}
		for i := range x.p {
			x.p[i] /= sum
		}
		steps = append(steps, x)
		ids = append(ids, token.ID)
	}
	return steps
}

// surprise is the mean of −log2 p over a text.
func surprise(steps []said) (mean float64) {
	for _, x := range steps {
		mean -= math.Log2(x.p[x.id]) / float64(len(steps))
	}
	return mean
}

// likely is the mean probability of a text's tokens.
func likely(steps []said) (mean float64) {
	for _, x := range steps {
		mean += x.p[x.id] / float64(len(steps))
	}
	return mean
}

// each tells whether all tokens of a text are as a rule says.
func each(steps []said, rule func(x said) bool) bool {
	return len(steps) > 0 && !slices.ContainsFunc(steps, func(x said) bool { return !rule(x) })
}

// isTypical tells whether a token is among those whose surprise is nearest to the entropy
// that hold a share of the mass.
func isTypical(x said, share float64) bool {
	entropy := 0.0
	for _, p := range x.p {
		if p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	order := make([]int, len(x.p))
	for i := range order {
		order[i] = i
	}
	far := func(i int) float64 { return math.Abs(-math.Log(x.p[i]) - entropy) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(far(a), far(b)) })
	mass := 0.0
	for _, i := range order {
		if mass += x.p[i]; i == int(x.id) {
			return true
		}
		if mass > share+1e-6 {
			break
		}
	}
	return false
}

// repeated is the length of the longest run of tokens that comes twice in a text.
func repeated(r *appliance.Result) (longest int) {
	for a := range r.Tokens {
		for b := a + 1; b < len(r.Tokens); b++ {
			n := 0
			for b+n < len(r.Tokens) && r.Tokens[a+n].ID == r.Tokens[b+n].ID {
				n++
			}
			longest = max(longest, n)
		}
	}
	return longest
}

func ids(r *appliance.Result) (all []int32) {
	for _, t := range r.Tokens {
		all = append(all, t.ID)
	}
	return all
}

// TestBuiltinsActOnAModel runs every built-in plugin with a model, through the service: the
// text is as the plugin's idea says, by what the model itself says at each of its tokens,
// and the text of the same seed without the plugin is not.
func TestBuiltinsActOnAModel(t *testing.T) {
	needsCompiler(t)
	all := newShelf(t)
	d := &stand{t: t, model: openGolden(t, "qwen3-dense")}
	t.Cleanup(func() { d.model.Close() })
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Plugins: all, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	s.Use(appliance.FromEngine(openGolden(t, "qwen3-dense")))
	d.s = s

	const n, seed = 40, 3
	plain, greedy := d.ask(1, seed, n), d.ask(0, seed, n)
	// ruled is for plugins of which a rule follows for each token.
	ruled := func(plugin string, rule func(x said) bool) func() (with, without bool) {
		return func() (with, without bool) {
			return each(d.says(d.ask(1, seed, n, plugin)), rule), each(d.says(plain), rule)
		}
	}
	// matches is for those that constrain the text.
	matches := func(plugin, pattern string) func() (with, without bool) {
		re := regexp.MustCompile(pattern)
		return func() (with, without bool) {
			got := d.ask(1, seed, 100, plugin)
			t.Logf("%.60q", got.Text)
			return re.MatchString(got.Text), re.MatchString(plain.Text)
		}
	}
	// steered is for those that bring the surprise of a text to a value: the lower that is, the
	// lower is what the model says itself, in the second half of texts. (It is higher than the
	// value: they look at what they left.) 20 bits steer nothing.
	steered := func(plugin string) func() (with, without bool) {
		return func() (with, without bool) {
			bits := func(plugins ...string) (mean float64) {
				for k := range int64(3) {
					steps := d.says(d.ask(1, seed+k, 100, plugins...))
					mean += surprise(steps[len(steps)/2:]) / 3
				}
				return mean
			}
			calm, middle, wild, plain := bits(plugin+` {"tau":4,"eta":0.3}`), bits(plugin+` {"tau":5,"eta":0.3}`), bits(plugin+` {"tau":20}`), bits()
			t.Logf("surprises of %.2f, %.2f and %.2f bits, plain %.2f", calm, middle, wild, plain)
			return calm < middle && middle < plain-0.5, wild < plain-0.5
		}
	}
	green := builtin.GreenList{Key: "k", Gamma: 0.5, Window: 1}
	const address = "write to jane.doe@example.com now"
	cases := map[string]func() (with, without bool){
		"min-p":   ruled(`min-p {"p":0.5}`, func(x said) bool { return x.p[x.id] >= 0.5*slices.Max(x.p)*(1-1e-5) }),
		"typical": ruled(`typical {"p":0.3}`, func(x said) bool { return isTypical(x, 0.3) }),
		"top-nsigma": ruled(`top-nsigma {"n":0.5}`, func(x said) bool {
			mean, square := 0.0, 0.0
			for _, l := range x.logits {
				mean += l / float64(len(x.logits))
			}
			for _, l := range x.logits {
				square += (l - mean) * (l - mean) / float64(len(x.logits))
			}
			return x.logits[x.id] >= slices.Max(x.logits)-0.5*math.Sqrt(square)-1e-3
		}),
		"xtc": ruled(`xtc {"probability":1,"threshold":0.01}`, func(x said) bool {
			var top []float64
			for _, p := range x.p {
				if p >= 0.01 {
					top = append(top, p)
				}
			}
			return len(top) < 2 || x.p[x.id] <= slices.Min(top)*(1+1e-5)
		}),
		"dynatemp": func() (with, without bool) { // from 0 to 0.02: all but greedy
			return slices.Equal(ids(d.ask(1, seed, n, `dynatemp {"temperature":0.01,"range":0.01}`)), ids(greedy)), slices.Equal(ids(plain), ids(greedy))
		},
		"mirostat":  steered("mirostat"),
		"mirostat2": steered("mirostat2"),
		"adaptive-p": func() (with, without bool) {
			mean := func(plugin string) float64 { return likely(d.says(d.ask(1, seed, n, plugin))) }
			base := likely(d.says(plain))
			acts := func(sure, unsure float64) bool { return sure > 1.3*base && unsure < base/2 }
			sure, unsure, off := mean(`adaptive-p {"target":0.9}`), mean(`adaptive-p {"target":0.01}`), mean(`adaptive-p {"target":-1}`)
			t.Logf("probabilities of %.3f and %.3f, plain %.3f", sure, unsure, base)
			return acts(sure, unsure), acts(off, off)
		},
		"dry": func() (with, without bool) {
			with0 := repeated(d.ask(0, seed, n, `dry {"multiplier":50,"base":4,"breakers":[]}`))
			t.Logf("repeats %d tokens, plain %d", with0, repeated(greedy))
			return with0 <= 3, repeated(greedy) <= 3
		},
		"grammar":         matches(`grammar {"gbnf":"root ::= \"on \" [a-c]+ \".\" | \"off\""}`, `^(on [a-c]+\.?|off)$`),
		"regex":           matches(`regex {"pattern":"[0-9]{4}-[a-f]{2}"}`, `^[0-9]{4}-[a-f]{2}$`),
		"json-schema":     matches(`json-schema {"schema":{"type":"object","properties":{"a":{"enum":["x","yy"]},"b":{"type":"boolean"}},"required":["a","b"],"additionalProperties":false}}`, `^\s*\{\s*"[ab]"(.|\n)*\}\s*$`),
		"multiple-choice": matches(`multiple-choice {"choices":["never","at noon"]}`, `^(never|at noon)$`),
		"language-lock": func() (with, without bool) {
			latin := func(r *appliance.Result) bool {
				return !strings.ContainsFunc(r.Text, func(c rune) bool {
					return unicode.IsLetter(c) && !unicode.Is(unicode.Latin, c) || c == unicode.ReplacementChar
				})
			}
			return latin(d.ask(1, seed, n, `language-lock {"scripts":"Latin"}`)), latin(plain)
		},
		"green-list": func() (with, without bool) {
			a, b := green.Detect(ids(d.ask(1, seed, n, `green-list {"key":"k","delta":10}`))), green.Detect(ids(plain))
			t.Logf("z %.1f, plain %.1f", a.Z, b.Z)
			return a.Z > 4, b.Z > 4
		},
		"anti-slop": func() (with, without bool) {
			phrase := phraseOf(t, greedy)
			got := d.ask(0, seed, n, fmt.Sprintf(`anti-slop {"phrases":[%s]}`, quoted(phrase)))
			has := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(phrase)) }
			t.Logf("without %q: %d rewinds", phrase, got.Plugins[0].Rewinds)
			return !has(got.Text) && got.Plugins[0].Rewinds > 0, !has(greedy.Text)
		},
		"pii": func() (with, without bool) {
			choice := fmt.Sprintf(`multiple-choice {"choices":[%q]}`, address)
			got, bare := d.ask(1, seed, 100, choice, "pii"), d.ask(1, seed, 100, choice)
			t.Logf("%q", got.Text)
			clean := func(s string) bool { return !strings.Contains(s, "jane") && strings.HasPrefix(s, "write to ") }
			return clean(got.Text), clean(bare.Text)
		},
		"thinking-budget": func() (with, without bool) {
			ends := func(r *appliance.Result) bool {
				text := ""
				for _, token := range r.Tokens[5:] {
					text += token.Text
				}
				return strings.HasPrefix(strings.TrimSpace(text), "[enough]") && strings.Contains(text[:min(len(text), 30)], "</think>")
			}
			return ends(d.ask(1, seed, n, `thinking-budget {"budget":5,"already_open":true,"message":"[enough]"}`)), ends(plain)
		},
		"cfg": func() (with, without bool) { // TestGuidance has the formula
			got := d.ask(0, seed, n, `cfg {"negative_prompt":"A story of the sea","scale":3}`)
			off := d.ask(0, seed, n, `cfg {"negative_prompt":"A story of the sea","scale":1}`)
			return !slices.Equal(ids(got), ids(greedy)), !slices.Equal(ids(off), ids(greedy))
		},
	}
	for name := range all {
		if cases[name] == nil {
			t.Errorf("%s: there is no case", name)
		}
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			with, without := run()
			if !with {
				t.Error("the text is not as the plugin's idea says")
			}
			if without {
				t.Error("so is the text without it: the test sees nothing")
			}
		})
	}
}

// phraseOf is a piece of ASCII from the middle of a text.
func phraseOf(t *testing.T, r *appliance.Result) string {
	t.Helper()
	for _, piece := range regexp.MustCompile(`[A-Za-z0-9 ]{3,}`).FindAllString(r.Text, -1) {
		return piece[:3]
	}
	t.Fatalf("there is no phrase in %q", r.Text)
	return ""
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
