package model

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/gguf"
)

// changed is a model file with some keys replaced or, by a nil value, left out.
type changed struct {
	*gguf.File
	uints  map[string]uint64
	floats map[string]any
}

func (c changed) Uint(key string) (uint64, bool) {
	if v, ok := c.uints[key]; ok {
		return v, true
	}
	return c.File.Uint(key)
}

func (c changed) Ints(key string) ([]int64, bool) {
	if _, ok := c.uints[key]; ok {
		return nil, false
	}
	return c.File.Ints(key)
}

func (c changed) Float(key string) (float64, bool) {
	if v, ok := c.floats[key]; ok {
		f, given := v.(float64)
		return f, given
	}
	return c.File.Float(key)
}

func TestNewRefusesWhatCannotBeRun(t *testing.T) {
	tests := []struct {
		name, says string
		uints      map[string]uint64
		floats     map[string]any
	}{
		{"as it is", "", nil, nil},
		{"no epsilon", "epsilon", nil, map[string]any{"llama.attention.layer_norm_rms_epsilon": nil}},
		{"epsilon that is no number", "epsilon", nil, map[string]any{"llama.attention.layer_norm_rms_epsilon": math.NaN()}},
		{"infinite scale", "attention.scale", nil, map[string]any{"llama.attention.scale": math.Inf(1)}},
		{"a million experts", "expert_count", map[string]uint64{"llama.expert_count": 1 << 20}, nil},
		{"wide feed-forward", "feed_forward_length", map[string]uint64{"llama.feed_forward_length": 1 << 20}, nil},
		{"no feed-forward", "feed_forward_length", map[string]uint64{"llama.feed_forward_length": 0}, nil},
		{"too many layers", "layers", map[string]uint64{"llama.block_count": 1 << 20}, nil},
		{"a layer that is not there", "blk.2.", map[string]uint64{"llama.block_count": 3}, nil},
	}
	f, err := gguf.Open(filepath.Join("..", "engine", "testdata", "arch", "llama-dense.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(changed{f, tt.uints, tt.floats}, Options{})
			if tt.says == "" && err != nil {
				t.Fatalf("error %v", err)
			}
			if tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("error %v, want one that names %s", err, tt.says)
			}
		})
	}
}
