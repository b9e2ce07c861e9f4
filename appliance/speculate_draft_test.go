package appliance_test

import (
	"math/rand/v2"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// bent is a model whose heads are changed on their way out.
type bent struct {
	appliance.Model
	bend func(rows []engine.Row, heads []engine.Head)
}

func (b bent) Run(rows []engine.Row) ([]engine.Head, error) {
	heads, err := b.Model.Run(rows)
	if err == nil {
		b.bend(rows, heads)
	}
	return heads, err
}

// insist makes a head one of which a token is always drawn.
func insist(h *engine.Head, id int32) {
	h.Best, h.Max, h.LogSumExp = id, 1e4, 1e4
	if h.Row != nil {
		h.Row = append([]float32{}, h.Row...)
		h.Row[id] = 1e4
	}
	if h.IDs != nil {
		ids, logits := []int32{id}, []float32{1e4}
		for i, other := range h.IDs {
			if other != id && len(ids) < len(h.IDs) {
				ids, logits = append(ids, other), append(logits, h.Logits[i])
			}
		}
		h.IDs, h.Logits = ids, logits
	}
}

// drafts are smaller models of all degrees of truth, made of one that is as good as
// the larger.
func drafts() map[string]func(good appliance.Model) appliance.Model {
	return map[string]func(appliance.Model) appliance.Model{
		"right": func(good appliance.Model) appliance.Model { return good },
		"wrong": func(good appliance.Model) appliance.Model {
			return bent{good, func(_ []engine.Row, heads []engine.Head) {
				for i := range heads {
					insist(&heads[i], (heads[i].Best+1)%int32(good.Info().Vocab))
				}
			}}
		},
		"at random": func(good appliance.Model) appliance.Model {
			rng := rand.New(rand.NewPCG(5, 6))
			return bent{good, func(_ []engine.Row, heads []engine.Head) {
				for i := range heads {
					if rng.IntN(3) == 0 {
						insist(&heads[i], rng.Int32N(int32(good.Info().Vocab)))
					}
				}
			}}
		},
		"failing": func(good appliance.Model) appliance.Model {
			runs := 0
			return bent{good, func(rows []engine.Row, _ []engine.Head) {
				if runs++; runs%40 == 0 {
					panic("a fault of the smaller model")
				}
			}}
		},
	}
}

// withDraft joins a model with a smaller one.
func withDraft(t testing.TB, m, small appliance.Model) appliance.Model {
	t.Helper()
	joined, err := appliance.WithDraft(m, small)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

func TestDraftModelChangesNothing(t *testing.T) {
	for how, bend := range drafts() {
		for name, open := range doubles() {
			t.Run(name+"/"+how, func(t *testing.T) {
				drafted, accepted := check(t, func() appliance.Model { return withDraft(t, open(), bend(open())) }, appliance.SpeculateDraft, 40)
				t.Logf("%d of %d guesses came", accepted, drafted)
				wantGuesses(t, how, drafted, accepted)
			})
		}
		for _, numerics := range []ops.Numerics{ops.Exact, ops.Fast} {
			t.Run("gemma3-dense/"+numerics.String()+"/"+how, func(t *testing.T) {
				open := func() appliance.Model { return tiny(t, "gemma3-dense", numerics) }
				drafted, accepted := check(t, func() appliance.Model { return withDraft(t, open(), bend(open())) }, appliance.SpeculateDraft, 8)
				t.Logf("%d of %d guesses came", accepted, drafted)
				wantGuesses(t, how, drafted, accepted)
			})
		}
	}
}

func wantGuesses(t *testing.T, how string, drafted, accepted int) {
	t.Helper()
	switch share := float64(accepted) / max(float64(drafted), 1); {
	case drafted == 0:
		t.Error("nothing was guessed: nothing was tested")
	case how == "right" && share < 0.5, how == "wrong" && share > 0.1:
		t.Errorf("%d of %d guesses of a model that is %s came", accepted, drafted, how)
	}
}

// forgetful is a model that does not take tokens back.
type forgetful struct{ appliance.Model }

func (f forgetful) Truncate(_, n int) (int, error) { return n, nil }

// The partner of the tests above: verification that accepts a wrong token, and one
// that leaves a wrong token in the slot, are seen.
func TestBrokenVerificationIsSeen(t *testing.T) {
	text := "abcabcabdabcabcabeabcabdabcabcabcabcabdabcabe"
	script := appliancetest.Script{For: func(string) string { return text }}
	open := func() appliance.Model { return appliancetest.NewScripted(script, appliancetest.Options{}) }
	hashedOnce := func() appliance.Model { return appliancetest.NewHashed(appliancetest.Options{}) }
	request := []*appliance.Request{{ID: appliance.NewID(), Prompt: "abcabcabc", MaxTokens: ptr[int64](40), Temperature: ptr(0.0), Seed: ptr[int64](1)}}
	for _, c := range []struct {
		name  string
		plain func() appliance.Model
		bad   func() appliance.Model
		bent  bool
	}{
		{"sound", open, open, false},
		// Every row behind which a guess is run says that the guess is right.
		{"accepts", open, func() appliance.Model {
			return bent{open(), func(rows []engine.Row, heads []engine.Head) {
				at := 0
				for i, r := range rows {
					if r.Want && i+1 < len(rows) && rows[i+1].Slot == r.Slot {
						insist(&heads[at], rows[i+1].Token)
					}
					if r.Want {
						at++
					}
				}
			}}
		}, true},
		{"leaves", hashedOnce, func() appliance.Model {
			return forgetful{withDraft(t, hashedOnce(), drafts()["at random"](hashedOnce()))}
		}, true},
	} {
		want := observe(t, guessing(t, c.plain(), appliance.SpeculateOff), request, 1)
		bad := c.bad()
		from := appliance.SpeculateLookup
		if f, ok := bad.(forgetful); ok {
			from = appliance.SpeculateDraft
			bad = withoutTakingBack{f, f.Model.(appliance.Drafted).Draft()}
		}
		got := observe(t, guessing(t, bad, from), request, 1)
		if d, _ := guessed(got); d == 0 {
			t.Errorf("%s: nothing was guessed", c.name)
		}
		if seen := differences(want, got, true); (len(seen) > 0) != c.bent {
			t.Errorf("%s: differences %v", c.name, seen)
		}
	}
}

// withoutTakingBack is a forgetful model with a draft model that is not.
type withoutTakingBack struct {
	forgetful
	small appliance.Model
}

func (w withoutTakingBack) Draft() appliance.Model { return w.small }
