package model

import (
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
)

// moeFile is Ling 2's golden model: every router option is a key of its own there.
func moeFile(t *testing.T) *gguf.File {
	t.Helper()
	f, err := gguf.Open(archtest.Golden(t).Path(t, "bailingmoe2-moe"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// patched changes several keys of Ling 2.
func patched(f Source, keys map[string]any) Source {
	for key, v := range keys {
		f = patch{f, "bailingmoe2." + key, v}
	}
	return f
}

// The router does what the keys say.
func TestRouterOptions(t *testing.T) {
	f := moeFile(t)
	as := ops.Route{Kind: ops.RouteSigmoid, TopK: 2}
	tests := []struct {
		name string
		keys map[string]any
		want func(r *ops.Route)
	}{
		{"as it is", nil, func(*ops.Route) {}},
		{"softmax", map[string]any{"expert_gating_func": uint64(1)}, func(r *ops.Route) { r.Kind = ops.RouteSoftmax }},
		{"softmax of the chosen", map[string]any{"expert_gating_func": uint64(3)}, func(r *ops.Route) { r.Kind = ops.RouteRaw }},
		{"square root of softplus", map[string]any{"expert_gating_func": uint64(4)}, func(r *ops.Route) { r.Kind = ops.RouteSqrtSoftplus }},
		{"normalised", map[string]any{"expert_weights_norm": true}, func(r *ops.Route) { r.Norm = true }},
		{"scaled", map[string]any{"expert_weights_scale": 2.5}, func(r *ops.Route) { r.Scale = 2.5 }},
		{"three experts", map[string]any{"expert_used_count": uint64(3)}, func(r *ops.Route) { r.TopK = 3 }},
		{"experts by layer", map[string]any{"expert_used_count": []int64{1, 4}}, func(r *ops.Route) { r.TopK = 4 }},
		{"groups", map[string]any{"expert_group_count": uint64(2), "expert_group_used_count": uint64(1)},
			func(r *ops.Route) { r.Groups, r.GroupsUsed = 2, 1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(patched(f, tt.keys), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []ops.Route
			for _, op := range p.Ops {
				if r, ok := op.(*ops.Route); ok {
					if r.Bias == nil || r.Bias.Name != "blk.1.exp_probs_b.bias" {
						t.Errorf("the router's bias for choosing is %v", r.Bias)
					}
					got = append(got, ops.Route{Kind: r.Kind, TopK: r.TopK, Groups: r.Groups, GroupsUsed: r.GroupsUsed, Norm: r.Norm, Scale: r.Scale})
				}
			}
			want := as
			tt.want(&want)
			if len(got) != 1 || got[0] != want {
				t.Errorf("routers %+v, want one: %+v", got, want)
			}
		})
	}
}

// What a router cannot do is refused by the name of the key or of the tensor.
func TestRouterRefusals(t *testing.T) {
	f := moeFile(t)
	tests := []struct {
		name, says string
		keys       map[string]any
	}{
		{"no gating function", "expert_gating_func", map[string]any{"expert_gating_func": nil}},
		{"unknown gating function", "expert_gating_func", map[string]any{"expert_gating_func": uint64(5)}},
		{"more experts used than there are", "expert_used_count", map[string]any{"expert_used_count": uint64(5)}},
		{"no expert used", "expert_used_count", map[string]any{"expert_used_count": uint64(0)}},
		{"no experts", "expert_used_count", map[string]any{"expert_count": uint64(0)}},
		{"more experts than matrices", "blk.1.", map[string]any{"expert_count": uint64(8)}},
		{"too many experts", "expert_count", map[string]any{"expert_count": uint64(maxExperts + 1)}},
		{"groups that do not divide", "expert_group_count", map[string]any{"expert_group_count": uint64(3)}},
		{"a group for each expert", "expert_group_count", map[string]any{"expert_group_count": uint64(4)}},
		{"no group used", "expert_group_used_count", map[string]any{"expert_group_count": uint64(2)}},
		{"all groups used", "expert_group_used_count", map[string]any{"expert_group_count": uint64(2), "expert_group_used_count": uint64(2)}},
		{"another width of experts", "exps.weight", map[string]any{"expert_feed_forward_length": uint64(64)}},
		{"another width of the shared expert", "shexp.weight", map[string]any{"expert_shared_feed_forward_length": uint64(64)}},
		{"two shared experts", "shexp.weight", map[string]any{"expert_shared_count": uint64(2)}},
		{"experts in a dense layer", "blk.0.ffn_gate_inp.weight", map[string]any{"leading_dense_block_count": uint64(0)}},
		{"dense layers with experts", "blk.1.ffn_gate.weight", map[string]any{"leading_dense_block_count": uint64(2)}},
		{"a scale that is no number", "expert_weights_scale", map[string]any{"expert_weights_scale": "much"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(patched(f, tt.keys), Options{}); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that names %s", err, tt.says)
			}
		})
	}
}

// What the reference leaves undefined is refused by name, and only that.
func TestUndefinedKeysAreRefused(t *testing.T) {
	for _, tt := range []struct {
		set            *archtest.Set
		model, key     string
		value, allowed any
	}{
		{archtest.Golden(t), "grovemoe-moe", "expert_group_count", uint64(2), uint64(1)},
		{archtest.Variants(t), "step35-moe-capped", "swiglu_clamp_exp", []float32{0, 0.1, 0}, []float32{0, 0.3, 0}},
		{archtest.Variants(t), "deepseek2-ocr-moe", "rope.freq_base", 5000.0, 10000.0},
		{archtest.Variants(t), "nanbeige-dense-loops", "nextn_predict_layers", uint64(2), uint64(1)},
	} {
		t.Run(tt.model+"/"+tt.key, func(t *testing.T) {
			f, err := gguf.Open(tt.set.Path(t, tt.model))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			key := tt.set.Find(t, tt.model).Arch + "." + tt.key
			src := Source(patch{f, key, tt.value})
			if tt.key == "expert_group_count" {
				src = patch{src, "grovemoe.expert_group_used_count", uint64(1)}
			}
			if _, err := New(src, Options{}); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("error %v, want one that names %q", err, key)
			}
			if _, err := New(patch{f, key, tt.allowed}, Options{}); err != nil {
				t.Errorf("%v is refused: %v", tt.allowed, err)
			}
		})
	}
}
