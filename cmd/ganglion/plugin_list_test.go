package main

import (
	"strings"
	"testing"

	"ganglion/plugins/abi"
)

// TestPermissionsLeaveNothingOut: each thing that a manifest asks for, and each hook that
// changes something, is among what a person is told that the plugin may do.
func TestPermissionsLeaveNothingOut(t *testing.T) {
	if got := permissions(&abi.Manifest{}); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
	hooks := func(list ...abi.Hook) (s abi.HookSet) {
		for _, h := range list {
			s = s.With(h)
		}
		return s
	}
	for want, m := range map[string]abi.Manifest{
		"kv,clock":          {Capabilities: []string{"kv", "clock"}},
		"candidates":        {View: abi.View{Logits: abi.LogitsTop, N: 256}},
		"full":              {View: abi.View{Logits: abi.LogitsFull}},
		"gather":            {View: abi.View{GatherEOG: true}},
		"history,text":      {View: abi.View{Text: true, History: abi.History{Kind: abi.HistoryAll}}},
		"edits,mask":        {View: abi.View{Edits: 1, Mask: true}},
		"cut":               {Truncates: true},
		"holdback":          {View: abi.View{Holdback: 1}},
		"prompt":            {Hooks: hooks(abi.HookPrompt)},
		"temperature":       {Hooks: hooks(abi.HookLogits)},
		"temperature,force": {Hooks: hooks(abi.HookPlan)},
		"choose":            {Hooks: hooks(abi.HookChoose)},
		"force":             {Hooks: hooks(abi.HookAccept)},
		"rewrite":           {Hooks: hooks(abi.HookText)},
	} {
		if got := strings.Join(permissions(&m), ","); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
