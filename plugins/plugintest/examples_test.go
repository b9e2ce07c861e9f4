package plugintest

import (
	"encoding/json"
	"strings"
	"testing"

	"ganglion/plugins/builtin"
	"ganglion/plugins/sdk/sdktest"
)

// What the SDKs begin with keeps the contract, in every language.
func TestExamples(t *testing.T) {
	for _, lang := range sdktest.Languages() {
		t.Run(lang, func(t *testing.T) {
			file := sdktest.Example(t, lang)
			xtc, _ := builtin.Module("xtc")
			r, err := Check(t.Context(), file, Options{Tokens: 2000, Vocabularies: []int{32000}, Others: [][]byte{xtc}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				if !c.Passed && (c.Skipped == "" || c.Name != "golden") {
					t.Errorf("%s: %s%s", c.Name, c.Error, c.Skipped)
				}
			}
			if r.Hooks["logits"].Calls == 0 {
				t.Errorf("%+v", r.Hooks)
			}
		})
	}
}

// A plugin that takes tokens back itself is compared after others did so: anti-slop, with
// words that the made-up text has, comes to where it was.
func TestRewindersAreCompared(t *testing.T) {
	antiSlop, _ := builtin.Module("anti-slop")
	// Of the text that it makes in the kit, of one token and of two. All but the second are written where
	// another plugin takes tokens back afterwards.
	config := json.RawMessage(`{"phrases":["}famedda","zerbing","finda","taga"]}`)
	r, err := Check(t.Context(), antiSlop, Options{Config: config, Only: []string{"restore"}})
	if err != nil {
		t.Fatal(err)
	}
	restore := r.Checks[len(r.Checks)-1]
	if !restore.Passed || !strings.Contains(strings.Join(restore.Notes, "\n"), "took tokens back itself 4 times") {
		t.Errorf("%+v", restore)
	}
	t.Log(restore.Notes)
	// The partner: one that takes tokens back and does not forget those that others take.
	r = checkTwin(t, "rewinds", Options{Only: []string{"restore"}})
	if restore := r.Checks[len(r.Checks)-1]; restore.Passed || !strings.HasPrefix(restore.Error, "tokens taken back (draft: self): ") {
		t.Errorf("the twin: %+v", restore)
	} else {
		t.Log(restore.Error, restore.Notes)
	}
}

// The built-in plugins that do little with what their schema's edges are, with settings that
// a person would give.
func TestBuiltinsConfigured(t *testing.T) {
	for name, config := range map[string]string{
		"grammar":         `{"gbnf":"root ::= \"{\" [^}]* \"}\""}`,
		"regex":           `{"pattern":"[a-z ]{40,}"}`,
		"json-schema":     `{"schema":{"type":"array","items":{"type":"string"},"minItems":3}}`,
		"multiple-choice": `{"choices":["yes","no","perhaps"]}`,
		"green-list":      `{"key":"k","hard":true}`,
		"anti-slop":       `{"phrases":["}famedda","zerbing","finda","taga"]}`,
		"cfg":             `{"negative_prompt":"rude"}`,
	} {
		t.Run(name, func(t *testing.T) {
			file, _ := builtin.Module(name)
			r, err := Check(t.Context(), file, Options{Config: json.RawMessage(config), Tokens: 1000,
				Only: []string{"determinism", "restore", "memory", "pointers", "figures"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				if !c.Passed {
					t.Errorf("%s: %s%s", c.Name, c.Error, c.Skipped)
				}
			}
			if len(r.Checks) != 7 {
				t.Errorf("%d checks", len(r.Checks))
			}
		})
	}
}
