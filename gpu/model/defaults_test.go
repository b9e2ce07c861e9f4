package model

import (
	"math"
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
)

// found tells whether a plan has an operation of a type that looks as wanted.
func found[T ops.Op](p *ops.Plan, want func(T) bool) bool {
	for _, op := range p.Ops {
		if o, ok := op.(T); ok && want(o) {
			return true
		}
	}
	return false
}

func near(a float32, b float64) bool { return math.Abs(float64(a)-b) <= 1e-6*math.Abs(b) }

func scalesBy(f float64) func(*ops.Plan) bool {
	return func(p *ops.Plan) bool { return found(p, func(o *ops.Scale) bool { return near(o.Factor, f) }) }
}

// A key that real files leave out has the reference's default.
func TestDefaultOfAMissingKey(t *testing.T) {
	tests := []struct {
		model, key, what string
		has              func(*ops.Plan) bool
	}{
		{"llama-dense", "rope.freq_base", "base 10000", func(p *ops.Plan) bool { return p.Tables[0].Base == 10000 }},
		{"llama-dense", "rope.dimension_count", "whole heads rotated", func(p *ops.Plan) bool { return p.Tables[0].NRot == p.Caches[0].KeyDim }},
		{"llama-rope-yarn", "rope.scaling.yarn_beta_fast", "beta 32", func(p *ops.Plan) bool { return p.Tables[0].YaRN && p.Tables[0].BetaFast == 32 }},
		{"llama-rope-linear", "rope.scaling.type", "linear scaling", func(p *ops.Plan) bool { return p.Tables[0].Scale < 1 && !p.Tables[0].YaRN }},
		{"gemma2-dense", "attention.sliding_window", "a window of 4096", func(p *ops.Plan) bool { return p.Caches[0].Window == 4096 }},
		{"gemma2-dense", "attention.sliding_window_pattern", "every other layer local", func(p *ops.Plan) bool { return p.Caches[0].Window > 0 && p.Caches[1].Window == 0 }},
		{"gemma2-dense", "attn_logit_softcapping", "scores capped at 50", func(p *ops.Plan) bool { return found(p, func(o *ops.Attention) bool { return o.Softcap == 50 }) }},
		{"gemma2-dense", "final_logit_softcapping", "logits capped at 30", func(p *ops.Plan) bool { return found(p, func(o *ops.Softcap) bool { return o.Cap == 30 }) }},
		{"muse-glimmer-dense", "final_logit_softcapping", "logits capped at 30", func(p *ops.Plan) bool { return found(p, func(o *ops.Softcap) bool { return o.Cap == 30 }) }},
		{"gemma4", "final_logit_softcapping", "logits capped at 30", func(p *ops.Plan) bool { return found(p, func(o *ops.Softcap) bool { return o.Cap == 30 }) }},
		{"gemma3-dense", "final_logit_softcapping", "logits not capped", func(p *ops.Plan) bool { return !found(p, func(o *ops.Softcap) bool { return true }) }},
		{"gemma3-dense", "attention.sliding_window", "no window", func(p *ops.Plan) bool { return p.Caches[0].Window == 0 }},
		{"minicpm-dense", "embedding_scale", "embeddings × 12", func(p *ops.Plan) bool { return found(p, func(o *ops.Embed) bool { return o.Scale == 12 }) }},
		{"minicpm-dense", "residual_scale", "branches × 1.4/√2", scalesBy(1.4 / math.Sqrt2)},
		{"minicpm-dense", "logit_scale", "logits × 64/256", scalesBy(64.0 / 256)},
		{"granite-dense", "rope.scaling.finetuned", "RoPE", func(p *ops.Plan) bool { return len(p.Tables) == 1 }},
		{"mpt-dense", "attention.max_alibi_bias", "no bias by distance", func(p *ops.Plan) bool { return found(p, func(o *ops.Attention) bool { return o.ALiBi == 0 }) }},
		{"qwen3-dense", "context_length", "", nil},
		{"cohere2-dense", "attention.sliding_window", "", nil},
		{"cohere2-dense", "logit_scale", "", nil},
		{"granite-dense", "logit_scale", "", nil},
		{"gptneox-dense", "use_parallel_residual", "", nil},
		{"gpt2-dense", "attention.layer_norm_epsilon", "", nil},
		{"spark2_5-dense", "attention.sliding_window_pattern", "", nil},
		{"hrm_text-dense", "hrm.l_cycles", "", nil},
	}
	set := archtest.Golden(t)
	for _, tt := range tests {
		t.Run(tt.model+"/"+tt.key, func(t *testing.T) {
			f, err := gguf.Open(set.Path(t, tt.model))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			p, err := New(patch{f, set.Find(t, tt.model).Arch + "." + tt.key, nil}, Options{})
			switch {
			case tt.has == nil && (err == nil || !strings.Contains(err.Error(), tt.key)):
				t.Errorf("error %v, want one that names the key", err)
			case tt.has != nil && err != nil:
				t.Errorf("error %v, want %s", err, tt.what)
			case tt.has != nil && !tt.has(p):
				t.Errorf("the plan does not have %s", tt.what)
			}
		})
	}
}
