package abi

import (
	"errors"
	"ganglion/plugins/wasm/wasmtest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const least = `{"abi":"1.0","name":"x","version":"1.2.3","slot":"bias"`

func TestManifestDefaults(t *testing.T) {
	m, err := ParseManifest([]byte(least + `}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.Draft != DraftSnapshot || m.OnError != OnErrorSkip || m.MemoryPages != 64 || m.Fuel[HookPlan] != 2_000_000 ||
		m.View.Logits != LogitsNone || m.View.History.Kind != HistoryNone {
		t.Errorf("%+v", m)
	}
	if _, err := m.Schema.Fill([]byte(`{"a":1}`)); err == nil {
		t.Error("a configuration for a plugin without one is taken")
	}
	m, err = ParseManifest([]byte(`{"abi":"1.0","name":"x","version":"1.2.3-rc.1+b","slot":"constrain","hooks":["run","plan"],
		"view":{"logits":"topn","gather":[3,"eog"],"history":"last:64","mask":true,"edits":7,"holdback":64,"text":true},
		"limits":{"memory_pages":256,"fuel":{"plan":64000000}},"model":{"min_vocab":9,"tokenizers":["bpe"]},"capabilities":["kv","vocab"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.Draft != DraftRefuse || m.OnError != OnErrorFail || m.View.N != 256 || !m.View.GatherEOG || m.View.Gather[0] != 3 ||
		m.View.History != (History{HistoryLast, 64}) || m.Fuel[HookPlan] != 64_000_000 || !m.Can(CapKV) || m.Can(CapClock) ||
		m.MinVocab != 9 || !m.FitsTokenizer("bpe") || m.FitsTokenizer("spm") || !(&Manifest{}).FitsTokenizer("spm") {
		t.Errorf("%+v", m)
	}
}

func TestManifestRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, pointer string }{
		"nothing":           {``, ""},
		"no object":         {`[]`, ""},
		"two values":        {least + `}{}`, ""},
		"not UTF-8":         {least + ",\"title\":\"\xff\"}", ""},
		"twice":             {least + `,"name":"y"}`, "/name"},
		"twice inside":      {least + `,"view":{"n":1,"n":1}}`, "/view/n"},
		"deep":              {least + `,"config_schema":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "/config_schema" + strings.Repeat("/0", 63)},
		"unknown":           {least + `,"nmae":"y"}`, "/nmae"},
		"case":              {`{"ABI":"1.0"}`, "/abi"},
		"newer":             {strings.Replace(least, "1.0", "1.1", 1) + `}`, "/abi"},
		"name":              {strings.Replace(least, `"x"`, `"X/.."`, 1) + `}`, "/name"},
		"version":           {strings.Replace(least, "1.2.3", "1.2", 1) + `}`, "/version"},
		"slot":              {strings.Replace(least, "bias", "first", 1) + `}`, "/slot"},
		"hook":              {least + `,"hooks":["plan","open"]}`, "/hooks/1"},
		"run alone":         {least + `,"hooks":["run"]}`, "/hooks"},
		"run with snapshot": {least + `,"hooks":["run","plan"],"draft":"snapshot"}`, "/draft"},
		"candidates":        {least + `,"view":{"logits":"topn","n":5000}}`, "/view/n"},
		"fraction":          {least + `,"view":{"logits":"topn","n":1.5}}`, "/view/n"},
		"history":           {least + `,"view":{"history":"last:0"}}`, "/view/history"},
		"history sign":      {least + `,"view":{"history":"last:+1"}}`, "/view/history"},
		"gather":            {least + `,"view":{"gather":[1,-1]}}`, "/view/gather/1"},
		"pages":             {least + `,"limits":{"memory_pages":257}}`, "/limits/memory_pages"},
		"fuel":              {least + `,"limits":{"fuel":{"plan":64000001}}}`, "/limits/fuel/plan"},
		"fuel of no hook":   {least + `,"limits":{"fuel":{"plans":1}}}`, "/limits/fuel/plans"},
		"capability":        {least + `,"capabilities":["kv","kv"]}`, "/capabilities/1"},
		"schema keyword":    {least + `,"config_schema":{"type":"object","properties":{"a":{"$ref":"#"}}}}`, "/config_schema/properties/a/$ref"},
		"schema default":    {least + `,"config_schema":{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}}`, "/config_schema/properties/a/default"},
		"schema type":       {least + `,"config_schema":{"type":"string"}}`, "/config_schema/type"},
	} {
		_, err := ParseManifest([]byte(tt.text))
		var f *Fault
		if !errors.As(err, &f) || f.Pointer != tt.pointer {
			t.Errorf("%s: %v, want a fault at %q", name, err, tt.pointer)
		}
	}
	if _, err := ParseManifest([]byte(least + `,"description":"` + strings.Repeat("x", MaxManifestBytes) + `"}`)); err == nil {
		t.Error("a large manifest is taken")
	}
}

func TestSchema(t *testing.T) {
	s, err := ParseSchema([]byte(`{"type":"object","additionalProperties":false,"required":["n"],"properties":{
		"n":{"type":"integer","minimum":1,"exclusiveMaximum":10},
		"p":{"type":"number","default":0.5},
		"s":{"type":["string","null"],"minLength":2,"maxLength":3,"pattern":"^é"},
		"l":{"type":"array","items":{"enum":["a",1,{"x":[1]}]},"maxItems":2,"default":[1]},
		"k":{"const":true},
		"o":{"type":"object","properties":{"a/b":{"type":"boolean"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]string{
		`{"n":1}`:                    `{"l":[1],"n":1,"p":0.5}`,
		`{"n":9.0,"s":"éa","l":[]}`:  `{"l":[],"n":9.0,"p":0.5,"s":"éa"}`,
		`{"n":1,"s":null,"k":true}`:  `{"k":true,"l":[1],"n":1,"p":0.5,"s":null}`,
		`{"n":1,"l":[{"x":[1.0]}]}`:  `{"l":[{"x":[1.0]}],"n":1,"p":0.5}`,
		`{"n":1,"o":{"a/b":true}}`:   `{"l":[1],"n":1,"o":{"a/b":true},"p":0.5}`,
		`{"n":1,"o":{"free":[{}]}} `: `{"l":[1],"n":1,"o":{"free":[{}]},"p":0.5}`,
	} {
		got, err := s.Fill([]byte(config))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", config, got, err, want)
		}
	}
	for config, pointer := range map[string]string{
		``: "/n", `{}`: "/n", `[]`: "", `{"n":0}`: "/n", `{"n":10}`: "/n", `{"n":1.5}`: "/n", `{"n":"1"}`: "/n", `{"n":1e999}`: "/n",
		`{"n":1,"x":1}`: "/x", `{"n":1,"s":"é"}`: "/s", `{"n":1,"s":"éaaa"}`: "/s", `{"n":1,"s":"aé"}`: "/s",
		`{"n":1,"l":["a","b"]}`: "/l/1", `{"n":1,"l":["a",1,1]}`: "/l", `{"n":1,"k":false}`: "/k", `{"n":1,"o":{"a/b":1}}`: "/o/a~1b",
	} {
		_, err := s.Fill([]byte(config))
		var f *Fault
		if !errors.As(err, &f) || f.Pointer != pointer {
			t.Errorf("%s: %v, want a fault at %q", config, err, pointer)
		}
	}
}

func TestAt(t *testing.T) {
	v, err := ParseJSON([]byte(`{"a":[1,{"b/~":"x"}],"":2}`))
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]bool{"": true, "/": true, "/a": true, "/a/1/b~1~0": true, "/a/2": false, "/a/01": false, "/a/-1": false, "a": false, "/a/0/0": false} {
		if _, ok := At(v, pointer); ok != want {
			t.Errorf("%q: %v", pointer, ok)
		}
	}
}

// The contract and the numbers say the same.
func TestContractSaysTheNumbers(t *testing.T) {
	text, err := os.ReadFile("ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	offsets := map[string]int{
		"magic": OffMagic, "size": OffSize, "abi": OffABI, "hook": OffHook, "flags": OffFlags, "step": OffStep, "position": OffPosition,
		"sequence": OffSequence, "vocab": OffVocab, "last_token": OffLastToken, "n_prompt": OffNPrompt, "n_generated": OffNGenerated,
		"history_off": OffHistory, "history_len": OffHistoryLen, "history_pos": OffHistoryPos, "cand_cap": OffCandCap, "cand_n": OffCandN,
		"cand_ids_off": OffCandIDs, "cand_logits_off": OffCandLogits, "gather_n": OffGatherN, "gather_ids_off": OffGatherIDs,
		"gather_logits_off": OffGatherLogits, "full_off": OffFull, "mask_off": OffMask, "edit_off": OffEdit, "edit_cap": OffEditCap,
		"edit_n": OffEditN, "out_off": OffOut, "out_cap": OffOutCap, "out_n": OffOutN, "in_off": OffIn, "in_n": OffInN, "max": OffMax,
		"mean": OffMean, "std": OffStd, "logsumexp": OffLogSumExp, "entropy": OffEntropy, "cand_mass": OffCandMass,
		"temperature": OffTemperature, "n_finite": OffNFinite, "random": OffRandom, "token": OffToken, "backtrack": OffBacktrack,
		"stop_reason": OffStopReason, "wake_step": OffWakeStep, "fuel": OffFuel,
	}
	rows := regexp.MustCompile("(?m)^\\| ([0-9A-F]{2}) \\| [a-z0-9\\[\\]]+ \\| `(\\w+)` \\|").FindAllStringSubmatch(string(text), -1)
	if len(rows) != len(offsets) {
		t.Errorf("the contract has %d fields, the package %d", len(rows), len(offsets))
	}
	for _, r := range rows {
		at, _ := strconv.ParseInt(r[1], 16, 0)
		if want, ok := offsets[r[2]]; !ok || int(at) != want {
			t.Errorf("%s is at %x in the contract, at %x here", r[2], at, want)
		}
	}
	actions := regexp.MustCompile(`(?m)^\| (\d+) \| ([A-Z]+) \| ([a-z, ]+) \|`).FindAllStringSubmatch(string(text), -1)
	if len(actions) != len(actionNames) {
		t.Errorf("the contract has %d actions, the package %d", len(actions), len(actionNames))
	}
	for _, r := range actions {
		bit, _ := strconv.Atoi(r[1])
		if Action(bit).String() != r[2] {
			t.Errorf("bit %d is %s in the contract, %s here", bit, r[2], Action(bit))
		}
		for h := HookOpen; h < Hooks; h++ {
			says := strings.Contains(", "+r[3]+",", " "+h.String()+",")
			if has := h.Allowed()&Action(bit) != 0; has != says {
				t.Errorf("%s at %s: %v here, %v in the contract", r[2], h, has, says)
			}
		}
	}
}

func TestLayoutHasNoOverlap(t *testing.T) {
	m, err := ParseManifest([]byte(least + `,"view":{"logits":"full","n":10,"mask":true,"edits":3,"history":"all","text":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	all := HookSet(0)
	for h := HookOpen; h < Hooks; h++ {
		all = all.With(h)
	}
	l := m.Lay(all, Extent{Vocab: 100, Tokens: 50, PromptBytes: 33, Gather: 5})
	parts := [][2]int{{0, HeaderBytes}, {l.History, 4 * l.HistoryCap}, {l.CandIDs, 4 * l.CandCap}, {l.CandLogits, 4 * l.CandCap},
		{l.GatherIDs, 4 * l.GatherN}, {l.GatherLogits, 4 * l.GatherN}, {l.Full, 400}, {l.Mask, 16}, {l.Edits, 8 * l.EditCap}, {l.Out, l.OutCap}, {l.In, l.InCap}}
	used := make([]bool, l.Size)
	for i, p := range parts {
		if p[1] == 0 || p[0]%FrameAlign != 0 {
			t.Errorf("part %d: %v", i, p)
		}
		for at := p[0]; at < p[0]+p[1]; at++ {
			if used[at] {
				t.Fatalf("part %d overlaps at %d", i, at)
			}
			used[at] = true
		}
	}
}

// A long name above many elements costs no more than its length: places are written out
// for faults alone, and then right.
func TestLongNamesCostLittle(t *testing.T) {
	name := strings.Repeat("n", 512<<10)
	text := []byte(`{"` + name + `":[` + strings.Repeat("0,", 200_000) + `0]}`)
	began := wasmtest.CPUTime()
	if _, err := ParseJSON(text); err != nil {
		t.Fatal(err)
	}
	s, err := ParseSchema([]byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fill([]byte(`{"a":[` + strings.Repeat("{},", 200_000) + `{}]}`)); err != nil {
		t.Fatal(err)
	}
	if took := wasmtest.CPUTime() - began; took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	var f *Fault
	if _, err := ParseJSON([]byte(`{"a/b":[1,{"c":1,"c":2}]}`)); !errors.As(err, &f) || f.Pointer != "/a~1b/1/c" {
		t.Errorf("%v", err)
	}
	if _, err := s.Fill([]byte(`{"a":[{},3]}`)); !errors.As(err, &f) || f.Pointer != "/a/1" {
		t.Errorf("%v", err)
	}
}

// Defaults in the elements of defaults multiply, up to a bound.
func TestDefaultsDoNotMultiply(t *testing.T) {
	level := func(n int, items string) string {
		return `{"type":"object","properties":{"a":{"type":"array","items":` + items + `,"default":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}}}`
	}
	nested := func(n int) error {
		s, err := ParseSchema([]byte(level(n, level(n, level(n, `{"type":"object"}`)))))
		if err == nil {
			_, err = s.Fill(nil)
		}
		return err
	}
	if err := nested(10); err != nil {
		t.Error(err)
	}
	var f *Fault
	if err := nested(3000); !errors.As(err, &f) || !strings.Contains(f.Message, "defaults are more than") {
		t.Errorf("%v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(least + `}`))
	f.Add([]byte(least + `,"config_schema":{"type":"object","properties":{"a":{"type":"integer","default":1}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := ParseManifest(b); err == nil {
			if m.View.N > MaxCandidates || m.MemoryPages > MaxMemoryPages || !nameRule.MatchString(m.Name) {
				t.Errorf("%+v", m)
			}
			_, _ = m.Schema.Fill(b)
		}
	})
}
