package appliance_test

import (
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
)

// TestDraftVocabulary: a draft model with other tokens is refused with the first that
// differs.
func TestDraftVocabulary(t *testing.T) {
	piece := func(text ...string) *appliancetest.Scripted {
		return appliancetest.NewScripted(appliancetest.Script{Pieces: text}, appliancetest.Options{Name: "m-" + text[0]})
	}
	large := piece("red", "green")
	for _, c := range []struct {
		name  string
		small appliance.Model
		want  string
	}{
		{"equal", piece("red", "green"), ""},
		{"fewer tokens", piece("red"), `draft model "m-red" cannot guess for "m-red": its vocabulary has 261 tokens and not 262`},
		{"another token", piece("red", "blue"), `its token 261 is "blue" and not "green"`},
		{"fewer slots", appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"red", "green"}}, appliancetest.Options{Slots: 1}), "has 1 slots"},
	} {
		m, err := appliance.WithDraft(large, c.small)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		case err == nil:
			if err := m.Close(); err != nil || !large.Closed() || !c.small.(*appliancetest.Scripted).Closed() {
				t.Errorf("%s: closed with %v; both models must be closed", c.name, err)
			}
		}
	}
}

// TestRequestChoosesItsGuesses: the field of the request wins, and its record says so.
func TestRequestChoosesItsGuesses(t *testing.T) {
	script := appliancetest.Script{Pieces: []string{"a", "b", "c"}, Endless: true}
	open := func() appliance.Model { return appliancetest.NewScripted(script, appliancetest.Options{}) }
	for _, c := range []struct {
		configured, asked, want appliance.Speculation
		draft                   bool
	}{
		{appliance.SpeculateLookup, "", appliance.SpeculateLookup, false},
		{appliance.SpeculateOff, "", appliance.SpeculateOff, false},
		{appliance.SpeculateOff, appliance.SpeculateLookup, appliance.SpeculateLookup, false},
		{appliance.SpeculateLookup, appliance.SpeculateOff, appliance.SpeculateOff, false},
		{appliance.SpeculateLookup, appliance.SpeculateDraft, appliance.SpeculateDraft, true},
		{appliance.SpeculateDraft, "", appliance.SpeculateDraft, true},
		{appliance.SpeculateDraft, "", appliance.SpeculateOff, false}, // there is no draft model
	} {
		m := open()
		if c.draft {
			m = withDraft(t, m, open())
		}
		b := guessing(t, m, c.configured)
		r := greedy("x", 60)
		r.Speculate = c.asked
		a := b.complete(t, r)
		rec := b.log.Ended()[0]
		last := rec.Params[len(rec.Params)-1]
		if last.Name != "speculate" || last.Value != string(c.want) {
			t.Errorf("%+v: recorded as %+v", c, last)
		}
		if guessed := rec.DraftedTokens > 0; guessed != (c.want != appliance.SpeculateOff) || rec.DraftedTokens != a.DraftedTokens || rec.AcceptedTokens != a.AcceptedTokens {
			t.Errorf("%+v: %d tokens guessed, the result says %d", c, rec.DraftedTokens, a.DraftedTokens)
		}
	}
	b := guessing(t, open(), appliance.SpeculateLookup)
	for _, word := range []appliance.Speculation{"yes", "Off", appliance.SpeculateDraft} {
		r := greedy("x", 5)
		r.Speculate = word
		b.refuse(t, r, appliance.CodeInvalid, "speculate")
	}
}

// TestGuessingIsSoonGivenUp bounds what a draft model costs that is always wrong, and a
// text that never repeats itself.
func TestGuessingIsSoonGivenUp(t *testing.T) {
	runs := 0
	count := func(int, []engine.Row) error { runs++; return nil }
	wrong := bent{appliancetest.NewHashed(appliancetest.Options{Before: count}), drafts()["wrong"](appliancetest.NewHashed(appliancetest.Options{})).(bent).bend}
	b := guessing(t, withDraft(t, appliancetest.NewHashed(appliancetest.Options{}), wrong), appliance.SpeculateDraft)
	r := sampled("a long text", 1, 1000)
	r.LogitBias = []appliance.Bias{{Key: "257", ID: int64(appliancetest.EOS), Value: -100}}
	b.complete(t, r)
	if rec := b.log.Ended()[0]; rec.CompletionTokens != 1000 || rec.DraftedTokens > 60 || runs > 120 {
		t.Errorf("%d guesses and %d runs of the draft model for %d tokens, of which none came", rec.DraftedTokens, runs, rec.CompletionTokens)
	}
	again := *r
	again.ID, again.Speculate = appliance.NewID(), appliance.SpeculateLookup
	b.complete(t, &again)
	if rec := b.log.Ended()[1]; rec.DraftedTokens > 60 {
		t.Errorf("%d guesses, of which %d came, in %d tokens of noise", rec.DraftedTokens, rec.AcceptedTokens, rec.CompletionTokens)
	}
}
