package appliance_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
)

// hashed returns a service over the model whose logits depend on the whole sequence.
func hashed(t testing.TB, o appliancetest.Options) *bench {
	t.Helper()
	return serve(t, appliancetest.NewHashed(o), appliance.Config{})
}

// sampled returns a request at temperature 1 with a seed.
func sampled(prompt string, seed, limit int64) *appliance.Request {
	return &appliance.Request{ID: appliance.NewID(), Prompt: prompt, Temperature: ptr(1.0), Seed: &seed, MaxTokens: &limit}
}

func ids(a answer) []int32 {
	var out []int32
	for _, t := range a.Tokens {
		out = append(out, t.ID)
	}
	return out
}

// first returns the first token of a completion.
func (b *bench) first(t testing.TB, r *appliance.Request) int32 {
	t.Helper()
	a := b.complete(t, r)
	if len(a.Tokens) == 0 {
		return appliancetest.EOS
	}
	return a.Tokens[0].ID
}

// best returns the most likely first tokens after a prompt, in order.
func (b *bench) best(t testing.TB, prompt string) []appliance.Alternative {
	t.Helper()
	r := greedy(prompt, 1)
	r.TopLogprobs = 5
	return b.complete(t, r).Tokens[0].Top
}

func TestF10TemperatureZeroIsGreedy(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	want := b.complete(t, greedy("Once", 32))
	for range 100 {
		if a := b.complete(t, greedy("Once", 32)); a.Text != want.Text {
			t.Fatalf("got %q, want %q", a.Text, want.Text)
		}
	}
	for i, tok := range want.Tokens {
		r := greedy("Once"+want.Text[:tok.Offset], 1)
		r.TopLogprobs = 1
		if top := b.complete(t, r).Tokens[0].Top[0].ID; top != tok.ID {
			t.Errorf("token %d is %d, the most likely one %d", i, tok.ID, top)
		}
	}
	absent := greedy("Once", 32)
	absent.Temperature, absent.Seed = nil, ptr[int64](1)
	if a := b.complete(t, absent); a.Text == want.Text {
		t.Error("an absent temperature gives the greedy text")
	}
}

func TestF11TopKZeroIsOff(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	draw := func(k *int64) (out []int32) {
		for seed := range int64(200) {
			r := sampled("Once", seed+1, 1)
			r.TopK = k
			out = append(out, b.first(t, r))
		}
		return out
	}
	off, absent, one := draw(ptr[int64](0)), draw(nil), draw(ptr[int64](1))
	if !slices.Equal(off, absent) {
		t.Error("top_k 0 differs from no top_k")
	}
	if n := distinct(off); n < 2 {
		t.Errorf("%d distinct tokens with top_k 0", n)
	}
	if n := distinct(one); n != 1 {
		t.Errorf("%d distinct tokens with top_k 1, want 1", n)
	}
	r := greedy("Once", 1)
	r.TopK = ptr[int64](-1)
	b.refuse(t, r, appliance.CodeInvalid, "top_k")
}

func distinct[T comparable](s []T) int {
	m := map[T]bool{}
	for _, v := range s {
		m[v] = true
	}
	return len(m)
}

func TestF12TopPBounds(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	with := func(p float64) *appliance.Request {
		r := sampled("Once", 5, 16)
		r.TopP = &p
		return r
	}
	if got, want := b.complete(t, with(0)).Text, b.complete(t, greedy("Once", 16)).Text; got != want {
		t.Errorf("top_p 0 gives %q, the most likely tokens are %q", got, want)
	}
	if got, want := b.complete(t, with(1)).Text, b.complete(t, sampled("Once", 5, 16)).Text; got != want {
		t.Errorf("top_p 1 gives %q, no top_p %q", got, want)
	}
	b.refuse(t, with(-0.1), appliance.CodeInvalid, "top_p")
	b.refuse(t, with(1.0001), appliance.CodeInvalid, "top_p")
	b.refuse(t, with(math.NaN()), appliance.CodeInvalid, "top_p")
}

func TestRangesAreNamed(t *testing.T) {
	b := pieces(t, "x")
	for _, c := range []struct {
		param string
		set   func(r *appliance.Request)
	}{
		{"temperature", func(r *appliance.Request) { r.Temperature = ptr(-1.0) }},
		{"temperature", func(r *appliance.Request) { r.Temperature = ptr(100.5) }},
		{"temperature", func(r *appliance.Request) { r.Temperature = ptr(math.Inf(1)) }},
		{"min_p", func(r *appliance.Request) { r.MinP = ptr(1.5) }},
		{"presence_penalty", func(r *appliance.Request) { r.PresencePenalty = ptr(2.01) }},
		{"frequency_penalty", func(r *appliance.Request) { r.FrequencyPenalty = ptr(-2.01) }},
		{"max_completion_tokens", func(r *appliance.Request) { r.MaxTokens = ptr[int64](-1) }},
		{"top_logprobs", func(r *appliance.Request) { r.TopLogprobs = 21 }},
		{"logit_bias[\"5\"]", func(r *appliance.Request) { r.LogitBias = []appliance.Bias{{Key: "5", ID: 5, Value: 101}} }},
		{"logit_bias[\"5\"]", func(r *appliance.Request) { r.LogitBias = []appliance.Bias{{Key: "5", ID: 5, Value: math.NaN()}} }},
	} {
		r := greedy("x", 4)
		c.set(r)
		b.refuse(t, r, appliance.CodeInvalid, c.param)
	}
}

func TestF13SeedIsHonoured(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	with := func(seed int64) string {
		r := sampled("Once", seed, 64)
		r.Temperature = ptr(0.9)
		return b.complete(t, r).Text
	}
	want := with(42)
	for range 4 {
		if got := with(42); got != want {
			t.Fatalf("seed 42 gives %q and %q", want, got)
		}
	}
	var texts []string
	for seed := range int64(20) {
		texts = append(texts, with(seed+1))
	}
	if n := distinct(texts); n < 15 {
		t.Errorf("%d distinct texts of 20 seeds, want at least 15", n)
	}
}

func TestF14WithoutASeedAnswersVaryAndReplay(t *testing.T) {
	b := serve(t, appliancetest.NewHashed(appliancetest.Options{}), appliance.Config{Rand: appliance.DefaultRand})
	var texts []string
	for range 20 {
		r := sampled("Once", 0, 32)
		r.Seed = nil
		texts = append(texts, b.complete(t, r).Text)
	}
	if n := distinct(texts); n < 15 {
		t.Errorf("%d distinct texts of 20, want at least 15", n)
	}
	for i, rec := range b.log.Ended() {
		if p := param(t, rec.Params, "seed"); p.Origin != appliance.FromRandom || p.Value != rec.Seed {
			t.Fatalf("seed is recorded as %+v and %d", p, rec.Seed)
		}
		if rec.Seed < 0 || rec.Seed > 1<<53-1 {
			t.Errorf("seed %d is not exact as a double", rec.Seed)
		}
		if a := b.complete(t, sampled("Once", rec.Seed, 32)); a.Text != texts[i] {
			t.Errorf("seed %d gives %q again, was %q", rec.Seed, a.Text, texts[i])
		}
	}
}

func param(t testing.TB, params []appliance.Param, name string) appliance.Param {
	t.Helper()
	i := slices.IndexFunc(params, func(p appliance.Param) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("parameter %q is not recorded", name)
	}
	return params[i]
}

func bias(id int32, v float64) appliance.Bias {
	return appliance.Bias{Key: fmt.Sprint(id), ID: int64(id), Value: v}
}

func TestF15BiasIsApplied(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	top := b.best(t, "Once")
	x, second, y := top[0].ID, top[1].ID, top[4].ID
	r := greedy("Once", 1)
	r.LogitBias = []appliance.Bias{bias(x, -100)}
	if got := b.first(t, r); got != second {
		t.Errorf("with the best banned: %d, want the second choice %d", got, second)
	}
	r = greedy("Once", 1)
	r.LogitBias = []appliance.Bias{bias(y, 100)}
	if got := b.first(t, r); got != y {
		t.Errorf("with %d raised: %d", y, got)
	}
	for seed := range int64(50) { // 10,000 tokens
		r := sampled("Once", seed, 200)
		r.LogitBias = []appliance.Bias{bias(x, -100), bias(appliancetest.EOS, -100)}
		a := b.complete(t, r)
		if len(a.Tokens) != 200 {
			t.Fatalf("%d tokens, want 200: the end is banned", len(a.Tokens))
		}
		if slices.Contains(ids(a), x) {
			t.Fatalf("seed %d: token %d occurs at bias -100", seed, x)
		}
	}
}

func TestF16UnknownBiasIdHarmsNobody(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	want := make([]string, 4)
	prompt := func(i int) *appliance.Request { return greedy(strings.Repeat("p", i+3), 40) }
	for i := range want {
		want[i] = b.complete(t, prompt(i)).Text
	}
	ctx := within(t)
	var running []*appliance.Completion
	for i := range want {
		c, err := b.Start(ctx, prompt(i))
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, c)
		for _, id := range []int64{999999999, -1, 4294967296, 260} {
			r := greedy("x", 4)
			key := fmt.Sprint(id)
			r.LogitBias = []appliance.Bias{{Key: key, ID: id, Value: 5}}
			b.refuse(t, r, appliance.CodeInvalid, `logit_bias["`+key+`"]`)
		}
	}
	for i, c := range running {
		res, err := c.Wait(ctx)
		if err != nil || res.Text != want[i] {
			t.Errorf("request %d: got %v, %v, want %q", i, res, err, want[i])
		}
	}
	long := greedy("x", 4)
	long.LogitBias = []appliance.Bias{{Key: strings.Repeat("\x01", 5000), ID: -5, Value: 1}}
	if e := b.refuse(t, long, appliance.CodeInvalid, `logit_bias["`+strings.Repeat(`\x01`, 15)+`"]`); len(e.Message) > 512 {
		t.Errorf("the message has %d bytes", len(e.Message))
	}
}

func TestF17EmptyBiasIsNone(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	want := b.complete(t, greedy("Once", 16)).Text
	r := greedy("Once", 16)
	r.LogitBias = []appliance.Bias{}
	if got := b.complete(t, r).Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestF18BiasIsPerTokenId(t *testing.T) {
	b := pieces(t, "cat")
	v, _ := b.Vocabulary()
	id := int32(v.VocabSize() - 1)
	r := greedy("x", 1)
	r.LogitBias = []appliance.Bias{bias('c', -100), bias(id-1, -100)}
	if a := b.complete(t, r); a.Text != "cat" {
		t.Errorf("got %q, want %q: only the id named is banned", a.Text, "cat")
	}
}

func TestF19PenaltiesCountGeneratedTokens(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	top := b.best(t, "cat cat cat cat")
	with := greedy("cat cat cat cat", 1)
	with.PresencePenalty, with.FrequencyPenalty = ptr(2.0), ptr(2.0)
	with.TopLogprobs = 5
	if got := b.complete(t, with).Tokens[0]; got.ID != top[0].ID || !slices.Equal(got.Top, top) {
		t.Errorf("the prompt's tokens are penalised: first token %d, want %d", got.ID, top[0].ID)
	}

	// The hashed model puts tokens 1 and 2 within one of each other, so after two
	// times, when the penalty is 2 + 2·2 = 6, a bias that leads by 5 has lost its
	// lead and one that leads by 7 has not. (That the penalty is 6 exactly is a
	// test of plugins/sampling.)
	for _, c := range []struct {
		lead  float64
		times int
	}{{5, 2}, {7, 3}} {
		r := greedy("x", 8)
		r.LogitBias = []appliance.Bias{bias(1, 90), bias(2, 90-c.lead)}
		r.PresencePenalty, r.FrequencyPenalty = ptr(2.0), ptr(2.0)
		a := b.complete(t, r)
		n := 0
		for n < len(a.Tokens) && a.Tokens[n].ID == 1 {
			n++
		}
		if n != c.times {
			t.Errorf("a lead of %g: said %d times in a row, want %d", c.lead, n, c.times)
		}
	}
}

func TestOriginsOfParameters(t *testing.T) {
	o := appliancetest.Options{Context: 64, Sampling: engine.Defaults{Temperature: ptr(0.5), TopK: ptr[int64](7), TopP: ptr(7.0)}}
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"x"}}, o)
	b := serve(t, m, appliance.Config{TopP: ptr(0.8), Temperature: ptr(0.3), DefaultMaxTokens: 20})
	r := &appliance.Request{ID: appliance.NewID(), Prompt: "abc", TopK: ptr[int64](3), PresencePenalty: ptr(0.0), Stop: []string{"q"}}
	a := b.complete(t, r)
	for name, want := range map[string]appliance.Param{
		"temperature":           {Value: 0.5, Origin: appliance.FromModel},
		"top_p":                 {Value: 0.8, Origin: appliance.FromConfig}, // the file's makes no sense
		"top_k":                 {Value: int64(3), Origin: appliance.FromRequest},
		"min_p":                 {Value: 0.0, Origin: appliance.FromDefault},
		"presence_penalty":      {Value: 0.0, Origin: appliance.FromRequest},
		"frequency_penalty":     {Value: 0.0, Origin: appliance.FromDefault},
		"max_completion_tokens": {Value: int64(20), Origin: appliance.FromConfig},
		"logprobs":              {Value: false, Origin: appliance.FromDefault},
		"stream":                {Value: false, Origin: appliance.FromDefault},
	} {
		got := param(t, a.Params, name)
		if got.Value != want.Value || got.Origin != want.Origin {
			t.Errorf("%s: got %v from %s, want %v from %s", name, got.Value, got.Origin, want.Value, want.Origin)
		}
	}
	r = &appliance.Request{ID: appliance.NewID(), Prompt: strings.Repeat("a", 60)}
	if got := param(t, b.complete(t, r).Params, "max_completion_tokens"); got.Value != int64(4) || got.Origin != appliance.FromLimit {
		t.Errorf("limit is %v from %s, want 4 from limit", got.Value, got.Origin)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]appliance.Config{
		"queue":       {QueueMax: -1},
		"max tokens":  {DefaultMaxTokens: -1},
		"temperature": {Temperature: ptr(-1.0)},
		"top_p":       {TopP: ptr(1.1)},
		"min_p":       {MinP: ptr(math.NaN())},
		"top_k":       {TopK: ptr[int64](-1)},
	} {
		if _, err := appliance.NewService(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSuppressedTokensAreNeverChosen(t *testing.T) {
	o := appliancetest.Options{}
	free := hashed(t, o)
	top := free.best(t, "Once")
	o.Vocabulary.Banned = []int32{top[0].ID}
	if got := hashed(t, o).first(t, greedy("Once", 1)); got != top[1].ID {
		t.Errorf("got %d, want the second choice %d", got, top[1].ID)
	}
}
