package appliance_test

import (
	"math/rand/v2"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

// Guesses change nothing where adapters act: each request's guesses are checked under
// its own adapters, and what a slot kept of other adapters is not taken for its own.
func TestSpeculationWithAdapters(t *testing.T) {
	o := appliancetest.Options{Adapters: []string{"law", "poems"}, Slots: 3, MaxRows: 48, Context: 160}
	open := func() appliance.Model { return appliancetest.NewHashed(o) }
	withAdapters := func(m appliance.Model, from appliance.Speculation) *bench {
		return guessing(t, m, from, appliance.LoRA{Path: "law.gguf", Scale: 0.5}, appliance.LoRA{Path: "poems.gguf"})
	}
	m := open()
	rng := rand.New(rand.NewPCG(11, 12))
	asked := randomRequests(rng, m.Vocabulary(), 40)
	for _, r := range asked {
		switch rng.IntN(4) {
		case 0: // the server's own
		case 1:
			r.LoRA = []appliance.AdapterChoice{}
		default:
			r.LoRA = []appliance.AdapterChoice{by([]string{"law", "poems"}[rng.IntN(2)], rng.Float64()*100)}
		}
	}
	want := observe(t, withAdapters(m, appliance.SpeculateOff), asked, 1)
	for _, from := range []appliance.Speculation{appliance.SpeculateLookup, appliance.SpeculateDraft} {
		for _, together := range []int{1, 3} {
			joined := open()
			if from == appliance.SpeculateDraft {
				joined = withDraft(t, joined, appliancetest.NewHashed(appliancetest.Options{Slots: 3, MaxRows: 48, Context: 160}))
			}
			got := observe(t, withAdapters(joined, from), asked, together)
			for _, d := range differences(want, got, false) {
				t.Errorf("%s, %d together, %s", from, together, d)
			}
			if drafted, _ := guessed(got); drafted == 0 {
				t.Errorf("%s, %d together: nothing was guessed: nothing was tested", from, together)
			}
		}
	}
	// The comparison can fail: under the server's adapters alone the answers are others.
	for _, r := range asked {
		r.LoRA = nil
	}
	if len(differences(want, observe(t, withAdapters(open(), appliance.SpeculateOff), asked, 1), false)) == 0 {
		t.Error("the adapters of the requests change no answer: nothing was tested")
	}
}
