package builtin

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

type settings = map[string]any

// accept tells a plugin that tokens joined the text at a step.
func (g *guest) accept(step int, tokens ...uint32) int32 {
	g.putWords(g.part.in, tokens)
	g.put(0x78, g.part.in-g.frame)
	g.put(0x7C, uint32(len(tokens)))
	g.put(0x14, uint32(step))
	g.put(0xC0, tokens[len(tokens)-1])
	return g.call("accept")
}

// mask lists the allowed tokens.
func (g *guest) mask() []uint32 {
	var ids []uint32
	for id := range uint32(g.vocab.size) {
		if g.words(g.part.mask+id/32*4, 1)[0]>>(id%32)&1 == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// forced lists the tokens of FORCE.
func (g *guest) forced() []uint32 { return g.words(g.part.out, int(g.get(0x74))) }

// texts are the pieces of tokens, sorted.
func (g *guest) texts(ids []uint32) []string {
	var s []string
	for _, id := range ids {
		s = append(s, g.vocab.pieces[id])
	}
	slices.Sort(s)
	return s
}

// say sends text through a plugin in pieces and returns what comes out.
func (g *guest) say(pieces ...string) string {
	var out strings.Builder
	for i, p := range pieces {
		g.put(0x10, 0)
		if i == len(pieces)-1 {
			g.put(0x10, 8)
		}
		g.m.Memory().WriteString(g.part.in, p)
		g.put(0x78, g.part.in-g.frame)
		g.put(0x7C, uint32(len(p)))
		if g.call("text")&512 == 0 {
			out.WriteString(p)
			continue
		}
		b, _ := g.m.Memory().Read(g.part.out, g.get(0x74))
		out.Write(b)
	}
	return out.String()
}

func TestXTCChance(t *testing.T) {
	g := newGuest(t, "xtc", settings{"probability": 0.25, "threshold": 0.1, "min_keep": 1}, of())
	for word, want := range map[uint32]int{0: 1, 1 << 29: 1, 1<<30 + 1<<10: 0, math.MaxUint32: 0} {
		g.distribution([]float32{1, 1, 0.9, -5}, 4)
		g.put(0xA0, word)
		if got := int(g.call("logits")); got != want {
			t.Errorf("random word %#x: actions %d, want %d", word, got, want)
		}
	}
}

// TestTruncationOnAView: with 256 of 4,096 tokens in sight the result is that of all, or
// nothing is cut.
func TestTruncationOnAView(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	logits := make(row, 4096)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	for name, config := range map[string]settings{"min-p": {"p": 0.05}, "top-nsigma": {"n": 1.5}, "typical": {"p": 0.2}, "xtc": {"probability": 1.0, "threshold": 0.01}} {
		v := &vocabulary{size: len(logits)}
		want := survivors(newGuest(t, name, config, v), logits)
		g := newGuest(t, name, config, v)
		g.distribution(logits, 256)
		actions := g.call("logits")
		left := map[uint32]bool{}
		for id := range logits {
			left[uint32(id)] = actions&4 == 0
		}
		for _, id := range g.candidates() {
			left[id] = true
		}
		for _, e := range g.edits() {
			left[e.id] = false
		}
		var got []uint32
		for id := range uint32(len(logits)) {
			if left[id] {
				got = append(got, id)
			}
		}
		if actions == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: actions %d, %d tokens of the view stay, %d of all", name, actions, len(got), len(want))
		}
	}
}

func TestThinkingBudget(t *testing.T) {
	v := of("<think>", "</think>", "Enough.", "hm", "well")
	think, end, message, hm := uint32(256), uint32(257), uint32(258), uint32(259)
	config := settings{"budget": 3, "open": "<think>", "close": "</think>", "message": "Enough."}
	g := newGuest(t, "thinking-budget", config, v)
	g.accept(0, hm)
	g.accept(1, hm, hm, hm, hm)
	if a := g.call("plan"); a != 0 {
		t.Errorf("outside of the reasoning: actions %d", a)
	}
	g.accept(5, think)
	g.accept(6, hm, hm)
	if a := g.call("plan"); a != 0 {
		t.Errorf("below the budget: actions %d", a)
	}
	g.accept(8, hm)
	if a := g.call("plan"); a != 64 || !slices.Equal(g.forced(), []uint32{message, end}) {
		t.Errorf("at the budget: actions %d, %v", a, g.forced())
	}
	g.accept(9, message, end)
	if a := g.call("plan"); a != 0 {
		t.Errorf("behind the reasoning: actions %d", a)
	}
	config["already_open"] = true
	g = newGuest(t, "thinking-budget", config, v)
	g.accept(0, hm, hm, hm)
	if a := g.call("plan"); a != 64 {
		t.Errorf("opened by the prompt: actions %d", a)
	}
}

func TestMultipleChoice(t *testing.T) {
	v := of("ye", "yes", "yesterday", "no", "es", "s", "not", "yes!")
	g := newGuest(t, "multiple-choice", settings{"choices": []string{"yes", "yesterday", "no"}}, v)
	allowed := func(want ...string) {
		t.Helper()
		slices.Sort(want)
		if a, got := g.call("plan"), g.texts(g.mask()); a != 2 || !slices.Equal(got, want) {
			t.Errorf("actions %d, allowed %q, want %q", a, got, want)
		}
	}
	allowed("y", "ye", "yes", "yesterday", "n", "no")
	g.accept(0, 'y')
	allowed("e", "es")
	g.accept(1, 'e')
	allowed("s", "s") // byte 0x73 and the piece of the same text
	if a := g.accept(2, 's'); a != 0 {
		t.Errorf("two choices are left: actions %d", a)
	}
	allowed("", "t") // the end, or on to yesterday
	g = newGuest(t, "multiple-choice", settings{"choices": []string{"yes", "no"}}, v)
	if a := g.accept(0, 'n', 'o'); a != 256 {
		t.Errorf("a choice is whole: actions %d", a)
	}
}

func TestLanguageLock(t *testing.T) {
	v := of("hello", "привет", "42", "héé")
	g := newGuest(t, "language-lock", settings{"scripts": "Latin"}, v)
	for range 2 {
		if a := g.call("plan"); a != 2 {
			t.Fatalf("actions %d", a)
		}
		allowed := g.mask()
		for id, want := range map[uint32]bool{256: true, 257: false, 258: true, 259: true, 0xD0: false, 'a': true, '!': true, v.eog[0]: true} {
			if slices.Contains(allowed, id) != want {
				t.Errorf("token %q: allowed is not %v", v.pieces[id], want)
			}
		}
	}
}

// TestGreenList writes texts with and without the watermark and finds it.
func TestGreenList(t *testing.T) {
	v := &vocabulary{size: 5000}
	r := rand.New(rand.NewPCG(3, 4))
	config := settings{"key": "secret", "gamma": 0.25, "delta": 4.0, "window": 2}
	detector := GreenList{Key: "secret", Gamma: 0.25, Window: 2}
	for name, hard := range map[string]bool{"soft": false, "hard": true} {
		config["hard"] = hard
		g := newGuest(t, "green-list", config, v)
		text := []uint32{17, 4}
		for range 200 {
			g.history(text)
			logits := make([]float32, v.size)
			for i := range logits {
				logits[i] = float32(r.NormFloat64())
			}
			if hard {
				if a := g.call("plan"); a != 2 {
					t.Fatalf("actions %d", a)
				}
				allowed := g.mask()
				text = append(text, allowed[r.IntN(len(allowed))])
				continue
			}
			g.distribution(logits, 256)
			g.call("logits")
			for _, e := range g.edits() {
				logits[e.id] += e.value
			}
			best := 0
			for i := range logits {
				if logits[i] > logits[best] {
					best = i
				}
			}
			text = append(text, uint32(best))
		}
		var tokens []int32
		for _, id := range text {
			tokens = append(tokens, int32(id))
		}
		if f := detector.Detect(tokens); f.Z < 10 || f.P > 1e-20 || f.Share() < 0.6 {
			t.Errorf("%s: %+v in a text with the watermark", name, f)
		}
		if f := (GreenList{Key: "other", Gamma: 0.25, Window: 2}).Detect(tokens); math.Abs(f.Z) > 4 || f.P < 1e-5 {
			t.Errorf("%s: %+v under another key", name, f)
		}
		if hard {
			for i, id := range text[2:] {
				if one := detector.Detect([]int32{tokens[i], tokens[i+1], int32(id)}); one.Green != 1 {
					t.Fatalf("token %d is not green", i)
				}
			}
		}
	}
	plain := make([]int32, 2000)
	for i := range plain {
		plain[i] = r.Int32N(5000)
	}
	if f := detector.Detect(plain); math.Abs(f.Z) > 4 {
		t.Errorf("%+v in a text without the watermark", f)
	}
	if f := detector.Detect(slices.Repeat([]int32{1, 2, 3}, 500)); f.Tokens > 3 {
		t.Errorf("a repetition counts %d times", f.Tokens)
	}
}

func TestAntiSlop(t *testing.T) {
	v := of(" a", " tap", "est", "ry", " of", " Tap", " map")
	a, tap, est, ry, of, Tap, map_ := uint32(256), uint32(257), uint32(258), uint32(259), uint32(260), uint32(261), uint32(262)
	g := newGuest(t, "anti-slop", settings{"phrases": []string{"tapestry of", "map"}}, v)
	for i, id := range []uint32{a, tap, est, ry} {
		if got := g.accept(10+i, id); got != 0 {
			t.Fatalf("step %d: actions %d", i, got)
		}
	}
	if got := g.accept(14, of); got != 128 || g.get(0xC4) != 4 {
		t.Fatalf("the phrase is whole: actions %d, back %d", got, g.get(0xC4))
	}
	banned := func(step int, want ...uint32) {
		t.Helper()
		g.put(0x14, uint32(step))
		g.call("plan")
		var got []uint32
		for _, e := range g.edits() {
			got = append(got, e.id)
		}
		if !slices.Equal(got, want) {
			t.Errorf("step %d: banned %v, want %v", step, got, want)
		}
	}
	banned(11, tap)
	banned(12)
	if got := g.accept(11, Tap, est, ry, of); got != 128 || g.get(0xC4) != 4 {
		t.Errorf("in capitals, at once: actions %d, back %d", got, g.get(0xC4))
	}
	banned(11, tap, Tap)
	if got := g.accept(11, map_); got != 128 || g.get(0xC4) != 1 {
		t.Errorf("one token: actions %d, back %d", got, g.get(0xC4))
	}
	g.accept(11, a)
	for i := range 100 { // older tokens are forgotten without harm
		if got := g.accept(12+i, a); got != 0 {
			t.Fatalf("actions %d", got)
		}
	}
	if got := g.accept(112, 'x', 'm', 'a', 'p'); got != 0 {
		t.Errorf("inside a word: actions %d", got)
	}
}

func TestPII(t *testing.T) {
	for in, want := range map[string]string{
		"Write to jane.doe+x@mail.example.org, please.":    "Write to [email], please.",
		"Her mail is a@b.co. Call +49 (30) 1234-5678 now.": "Her mail is [email]. Call [phone] now.",
		"Card 4111 1111 1111 1111 or 4111 1111 1111 1112?": "Card [card] or 4111 1111 1111 1112?",
		"IBAN DE89 3704 0044 0532 0130 00 it is":           "IBAN [iban] it is",
		"IBAN GB82WEST12345698765432.":                     "IBAN [iban].",
		"From 192.168.10.254 to 300.1.1.1 and 1.2.3.4.5":   "From [ip] to 300.1.1.1 and 1.2.3.4.5",
		"In 2024 there were 1,234,567 of 12 kinds (3).":    "In 2024 there were 1,234,567 of 12 kinds (3).",
		"pi is 3.14159265 and 10 - 3 = 7":                  "pi is 3.14159265 and 10 - 3 = 7",
		"@home me@ x@y":                                    "@home me@ x@y",
		"call 030 1234567 or 555-123-4567":                 "call [phone] or [phone]",
		"":                                                 "",
	} {
		g := func() *guest {
			return newGuest(t, "pii", settings{"email": true, "phone": true, "card": true, "iban": true, "ip": true}, of())
		}
		if got := g().say(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if got := g().say(append(strings.Split(in, ""), "")...); got != want {
			t.Errorf("%q byte by byte: got %q, want %q", in, got, want)
		}
		if got := newGuest(t, "pii", settings{"email": false, "phone": false, "card": false, "iban": false, "ip": false}, of()).say(in); got != in {
			t.Errorf("%q: switched off: got %q", in, got)
		}
	}
	long := strings.Repeat("x", 3000)
	g := newGuest(t, "pii", settings{}, of())
	if got := g.say(long, long, long, long, ""); got != long+long+long+long {
		t.Errorf("a word of 12,000 letters: %d came out", len(got))
	}
}

func TestCFG(t *testing.T) {
	v := of()
	g := newGuest(t, "cfg", settings{"negative_prompt": "Be rude.", "scale": 1.5}, v)
	if a := g.call("prompt"); a != 0 {
		t.Fatalf("actions %d", a)
	}
	logits := []float32{2, 1, 0.5, -1}
	g.second = []float32{0, 3, 0.5, 0.25}
	g.distribution(logits, 4)
	if a := g.call("logits"); a != 4 {
		t.Fatalf("actions %d", a)
	}
	total := func(l []float32) (sum float64) {
		for _, x := range l {
			sum += math.Exp(float64(x))
		}
		return math.Log(sum)
	}
	for i, w := range g.words(g.part.logits, 4) {
		with, without := float64(logits[i])-total(logits), float64(g.second[i])-total(g.second)
		if got, want := float64(math.Float32frombits(w)), without+1.5*(with-without); math.Abs(got-want) > 1e-5 {
			t.Errorf("token %d: %v, want %v", i, got, want)
		}
	}
	if g := newGuest(t, "cfg", settings{"negative_prompt": "x", "scale": 1}, v); g != nil {
		t.Error("a scale of 1 is of interest")
	}
}
