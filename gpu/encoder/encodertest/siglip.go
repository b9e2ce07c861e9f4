// Package encodertest makes encoder files of random weights for tests: towers large enough to
// take a while.
package encodertest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// SigLIP is Gemma 3's tower with its true widths and a quarter of its patches (448 pixels a
// side), with so many layers, random weights, and rows of out numbers.
func SigLIP(layers, out int) gguftest.Model {
	const width, hidden, side, patch = 1152, 4304, 448, 14
	const v = "clip.vision."
	m := gguftest.Model{KV: []gguftest.KV{
		{Key: "general.architecture", Value: "clip"}, {Key: "general.type", Value: "mmproj"}, {Key: "clip.has_vision_encoder", Value: true},
		{Key: "clip.projector_type", Value: "gemma3"}, {Key: "clip.use_gelu", Value: true},
		{Key: v + "embedding_length", Value: uint32(width)}, {Key: v + "feed_forward_length", Value: uint32(hidden)},
		{Key: v + "block_count", Value: uint32(layers)}, {Key: v + "attention.head_count", Value: uint32(16)},
		{Key: v + "attention.layer_norm_epsilon", Value: float32(1e-6)}, {Key: v + "projection_dim", Value: uint32(out)},
		{Key: v + "image_size", Value: uint32(side)}, {Key: v + "patch_size", Value: uint32(patch)},
		{Key: v + "image_mean", Value: []float32{.5, .5, .5}}, {Key: v + "image_std", Value: []float32{.5, .5, .5}},
	}}
	r := rand.New(rand.NewPCG(5, 6))
	draw := func(cols, rows int, typ tensor.Type, around float64) []byte {
		values, data := make([]float32, cols*rows), []byte(nil)
		for i := range values {
			values[i] = float32(around + r.NormFloat64()/math.Sqrt(float64(cols)))
		}
		if typ == tensor.F32 {
			return gguftest.F32(values...)
		}
		for _, x := range values {
			h := tensor.F32ToF16(x)
			data = append(data, byte(h), byte(h>>8))
		}
		return data
	}
	matrix := func(name string, dims ...int) {
		cols, rows := dims[0], 1
		for _, d := range dims[1:] {
			rows *= d
		}
		m.Tensors = append(m.Tensors, gguftest.Tensor{Name: name, Type: tensor.F16, Dims: dims, Data: draw(cols, rows, tensor.F16, 0)})
	}
	vector := func(name string, n int, around float64) {
		m.Tensors = append(m.Tensors, gguftest.Tensor{Name: name, Type: tensor.F32, Dims: []int{n}, Data: draw(n, 1, tensor.F32, around)})
	}
	matrix("v.patch_embd.weight", patch, patch, 3, width)
	vector("v.patch_embd.bias", width, 0)
	n := side / patch * (side / patch)
	m.Tensors = append(m.Tensors, gguftest.Tensor{Name: "v.position_embd.weight", Type: tensor.F32, Dims: []int{width, n}, Data: draw(width, n, tensor.F32, 0)})
	for il := range layers {
		blk := fmt.Sprintf("v.blk.%d.", il)
		for _, norm := range []string{"ln1", "ln2"} {
			vector(blk+norm+".weight", width, 1)
			vector(blk+norm+".bias", width, 0)
		}
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_out"} {
			matrix(blk+name+".weight", width, width)
			vector(blk+name+".bias", width, 0)
		}
		matrix(blk+"ffn_up.weight", width, hidden)
		vector(blk+"ffn_up.bias", hidden, 0)
		matrix(blk+"ffn_down.weight", hidden, width)
		vector(blk+"ffn_down.bias", width, 0)
	}
	vector("v.post_ln.weight", width, 1)
	vector("v.post_ln.bias", width, 0)
	vector("mm.soft_emb_norm.weight", width, 1)
	matrix("mm.input_projection.weight", out, width)
	return m
}
