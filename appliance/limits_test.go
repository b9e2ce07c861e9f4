package appliance_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

// endless returns a service over a model that never ends.
func endless(t testing.TB, o appliancetest.Options) *bench {
	t.Helper()
	return serve(t, appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a", "b", "c"}, Endless: true}, o), appliance.Config{})
}

func TestF23OneLogprobPerToken(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	for _, stream := range []bool{false, true} {
		r := greedy("Once", 5)
		r.Logprobs, r.Stream = true, stream
		a := b.complete(t, r)
		n := 0
		for _, c := range a.chunks {
			n += len(c.Tokens)
		}
		if len(a.Tokens) != 5 || n != 5 {
			t.Errorf("stream %v: %d tokens, %d in chunks, want 5", stream, len(a.Tokens), n)
		}
	}
}

func TestF24LogprobsAreNaturalAndNotPositive(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	for i := range 20 {
		r := sampled(strings.Repeat("q", i+1), int64(i), 64)
		r.TopLogprobs = 20
		for j, tok := range b.complete(t, r).Tokens {
			if tok.Logprob > 0 {
				t.Errorf("prompt %d, token %d: %g is positive", i, j, tok.Logprob)
			}
			sum := 0.0
			for k, alt := range tok.Top {
				sum += math.Exp(alt.Logprob)
				if alt.ID == tok.ID && alt.Logprob != tok.Logprob {
					t.Errorf("prompt %d, token %d: %g as chosen, %g among the best", i, j, tok.Logprob, alt.Logprob)
				}
				if k > 0 && alt.Logprob > tok.Top[k-1].Logprob {
					t.Errorf("prompt %d, token %d: alternatives are not in order", i, j)
				}
			}
			if sum > 1+1e-5 || sum < 0.3 {
				t.Errorf("prompt %d, token %d: the best 20 have probability %g together", i, j, sum)
			}
		}
	}
}

func TestF25LogprobsAreFinite(t *testing.T) {
	// The script stands 300 above all else, and the bias puts another token first.
	b := pieces(t, "a", "b")
	r := greedy("x", 5)
	r.Temperature, r.TopK, r.TopLogprobs = ptr(1.0), ptr[int64](1), 20
	b.complete(t, r) // checks that all are finite
	r = greedy("x", 5)
	r.LogitBias = []appliance.Bias{bias(260, -100), bias(260, -100), bias(260, -100), bias(260, -100)}
	a := b.complete(t, r)
	if a.Tokens[0].ID == 260 || a.Tokens[0].Logprob > -200 || math.IsInf(a.Tokens[0].Logprob, 0) {
		t.Errorf("got %+v, want an unlikely token with its finite log-probability", a.Tokens[0])
	}
}

func TestF26UsageCountsTheWholePrompt(t *testing.T) {
	b := hashed(t, appliancetest.Options{})
	prompt := strings.Repeat("long prompt ", 10)
	cold, warm := b.complete(t, greedy(prompt, 8)), b.complete(t, greedy(prompt, 8))
	if cold.Usage.PromptTokens != len(prompt) || warm.Usage.PromptTokens != len(prompt) {
		t.Errorf("prompt tokens %d and %d, want %d", cold.Usage.PromptTokens, warm.Usage.PromptTokens, len(prompt))
	}
	if cold.Usage.CachedTokens != 0 || warm.Usage.CachedTokens != len(prompt)-1 {
		t.Errorf("cached tokens %d and %d, want 0 and %d", cold.Usage.CachedTokens, warm.Usage.CachedTokens, len(prompt)-1)
	}
}

func TestF28FinishTellsLimitFromEnd(t *testing.T) {
	if a := endless(t, appliancetest.Options{}).complete(t, greedy("x", 3)); a.Finish != appliance.FinishLength {
		t.Errorf("a text that runs on: %s, want length", a.Finish)
	}
	// The end token is the third to be chosen, and the limit is three.
	a := pieces(t, "a", "b").complete(t, greedy("x", 3))
	if a.Finish != appliance.FinishStop || a.Usage.CompletionTokens != 2 {
		t.Errorf("the end exactly at the limit: %s, %d tokens, want stop, 2", a.Finish, a.Usage.CompletionTokens)
	}
}

func TestF30SmallLimitsAreExact(t *testing.T) {
	b := endless(t, appliancetest.Options{})
	for n, want := range []string{"", "a", "ab", "abc"} {
		a := b.complete(t, greedy("x", int64(n)))
		if a.Usage.CompletionTokens != n || a.Text != want || a.Finish != appliance.FinishLength {
			t.Errorf("limit %d: %q, %d tokens, %s", n, a.Text, a.Usage.CompletionTokens, a.Finish)
		}
		if a.Usage.PromptTokens != 1 {
			t.Errorf("limit %d: %d prompt tokens, want 1", n, a.Usage.PromptTokens)
		}
	}
	if got := b.log.Ended()[0]; got.Outcome != appliance.OutcomeLength || got.CompletionTokens != 0 {
		t.Errorf("a limit of 0 is recorded as %s with %d tokens", got.Outcome, got.CompletionTokens)
	}
}

func TestF31LimitIsClampedToTheRoom(t *testing.T) {
	b := endless(t, appliancetest.Options{Context: 256})
	for _, limit := range []int64{157, 156, math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64} {
		a := b.complete(t, greedy(strings.Repeat("p", 100), limit))
		if a.Usage.CompletionTokens != 156 || a.Finish != appliance.FinishLength {
			t.Errorf("limit %d: %d tokens, %s, want 156, length", limit, a.Usage.CompletionTokens, a.Finish)
		}
	}
}

func TestF32EveryRequestEnds(t *testing.T) {
	r := &appliance.Request{ID: appliance.NewID(), Prompt: "x"}
	if a := endless(t, appliancetest.Options{}).complete(t, r); a.Usage.CompletionTokens != 512 || a.Finish != appliance.FinishLength {
		t.Errorf("%d tokens, %s, want 512, length", a.Usage.CompletionTokens, a.Finish)
	}
	if a := endless(t, appliancetest.Options{Context: 64}).complete(t, r); a.Usage.CompletionTokens != 63 {
		t.Errorf("%d tokens in a context of 64, want 63", a.Usage.CompletionTokens)
	}
}

func TestF33LongPromptsAreRefusedNeverCut(t *testing.T) {
	b := endless(t, appliancetest.Options{Context: 256})
	prompt := func(n int) *appliance.Request { return greedy("CODEWORD"+strings.Repeat("p", n-8), 4) }
	a := b.complete(t, prompt(255))
	if a.Usage.CompletionTokens != 1 || a.Finish != appliance.FinishLength {
		t.Errorf("255 tokens: %d tokens of answer, %s, want 1, length", a.Usage.CompletionTokens, a.Finish)
	}
	for _, n := range []int{256, 257, 10000} {
		e := b.refuse(t, prompt(n), appliance.CodeContextLength, "prompt")
		if !strings.Contains(e.Message, fmt.Sprint(n)) || !strings.Contains(e.Message, "256") {
			t.Errorf("%q does not tell both numbers", e.Message)
		}
	}
	if seen := b.model.Prompts(); len(seen) != 1 || len(seen[0]) != 255 || string(rune(seen[0][0])) != "C" {
		t.Errorf("the model saw %d prompts", len(seen))
	}
}

func TestF34TooLongIsTheSamePlainAndStreamed(t *testing.T) {
	b := endless(t, appliancetest.Options{Context: 256})
	for _, stream := range []bool{false, true} {
		r := greedy(strings.Repeat("p", 10000), 4)
		r.Stream = stream
		b.refuse(t, r, appliance.CodeContextLength, "prompt")
	}
}

func TestF43PromptGoesAsItIs(t *testing.T) {
	for _, bos := range []bool{false, true} {
		m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"x"}}, appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: bos}})
		serve(t, m, appliance.Config{}).complete(t, greedy("I think ", 4))
		var want []int32
		if bos {
			want = append(want, appliancetest.BOS)
		}
		for _, c := range []byte("I think ") {
			want = append(want, int32(c))
		}
		if got := m.Prompts()[0]; !slices.Equal(got, want) {
			t.Errorf("BOS %v: the model saw %v, want %v", bos, got, want)
		}
	}
}

func TestF45BOSAppearsOnce(t *testing.T) {
	for _, bos := range []bool{false, true} {
		m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"x"}}, appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: bos}})
		b := serve(t, m, appliance.Config{})
		written, plain := b.complete(t, greedy("<bos>hi", 4)), b.complete(t, greedy("hi", 4))
		seen := m.Prompts()
		if want := []int32{appliancetest.BOS, 'h', 'i'}; !slices.Equal(seen[0], want) {
			t.Errorf("adds BOS %v, written: %v, want %v", bos, seen[0], want)
		}
		want := []int32{'h', 'i'}
		if bos {
			want = []int32{appliancetest.BOS, 'h', 'i'}
		}
		if !slices.Equal(seen[1], want) || plain.Usage.PromptTokens != len(want) || written.Usage.PromptTokens != 3 {
			t.Errorf("adds BOS %v, not written: %v (usage %d), want %v", bos, seen[1], plain.Usage.PromptTokens, want)
		}
	}
}

func TestF49SpecialParsingCanBeOff(t *testing.T) {
	for _, off := range []bool{false, true} {
		m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"x"}}, appliancetest.Options{})
		serve(t, m, appliance.Config{PlainSpecial: off}).complete(t, greedy("<pad>x<eos>", 4))
		control := 0
		for _, id := range m.Prompts()[0] {
			if id == appliancetest.Pad || id == appliancetest.EOS {
				control++
			}
		}
		if want := map[bool]int{false: 2, true: 0}[off]; control != want {
			t.Errorf("parsing off %v: %d control tokens, want %d", off, control, want)
		}
	}
}

func TestF51TrailingSpaceIsKeptAndWarned(t *testing.T) {
	b := pieces(t, "x")
	without, with := b.complete(t, greedy("meaning of life is", 4)), b.complete(t, greedy("meaning of life is ", 4))
	if with.Usage.PromptTokens != without.Usage.PromptTokens+1 {
		t.Errorf("%d and %d prompt tokens, want one more", without.Usage.PromptTokens, with.Usage.PromptTokens)
	}
	if len(without.Warnings) != 0 || len(with.Warnings) != 1 {
		t.Errorf("warnings %q and %q, want none and one", without.Warnings, with.Warnings)
	}
}

func TestF58MediaAreRefusedByName(t *testing.T) {
	b := pieces(t, "x")
	for _, kind := range []appliance.MediaKind{appliance.Image, appliance.Audio, appliance.Video} {
		r := greedy("x", 4)
		r.Media = []appliance.Media{{Kind: kind, Param: string(kind) + "[0]"}}
		b.refuse(t, r, appliance.CodeModality, string(kind))
	}
}

func TestF61EmptyPrompt(t *testing.T) {
	b := pieces(t, "x")
	if a := b.complete(t, greedy("", 4)); a.Usage.PromptTokens != 1 || b.model.Prompts()[0][0] != appliancetest.BOS {
		t.Errorf("an empty prompt has %d tokens, want BOS", a.Usage.PromptTokens)
	}
	r := greedy("", 4)
	r.PromptTokens = []int32{}
	b.complete(t, r)

	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"x"}}, appliancetest.Options{Vocabulary: appliancetest.Vocabulary{NoBOS: true}})
	none := serve(t, m, appliance.Config{})
	none.refuse(t, greedy("", 4), appliance.CodeEmptyPrompt, "prompt")
	none.complete(t, greedy("x", 4))
}

func TestPromptTokensAreTakenAsTheyAre(t *testing.T) {
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"x"}}, appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: true}})
	b := serve(t, m, appliance.Config{})
	r := greedy("ignored", 4)
	r.PromptTokens = []int32{7, 8}
	b.complete(t, r)
	if got := m.Prompts()[0]; !slices.Equal(got, []int32{7, 8}) {
		t.Errorf("the model saw %v, want [7 8]", got)
	}
	for _, bad := range []int32{-1, 1 << 20} {
		r := greedy("", 4)
		r.PromptTokens = []int32{7, bad}
		b.refuse(t, r, appliance.CodeInvalid, "prompt")
	}
	r = greedy("\xff", 4)
	b.refuse(t, r, appliance.CodeInvalidUTF8, "prompt")
}
