package encoder

import (
	"errors"
	"fmt"
	"math"

	"ganglion/gpu/gguf"
)

// The largest values that a file may ask for; the largest published are in brackets.
const (
	maxLayers = 256     // (48)
	maxWidth  = 1 << 16 // of rows and of feed-forward networks (17,920)
	maxSide   = 8192    // of a picture, in pixels (1,540)
	maxPatch  = 256     // (48)
	maxBins   = 256     // of a spectrogram (128)
	maxRows   = 1 << 16 // of a tower: patches or frames (16,384)
)

// modality is one of the two kinds of tower: what its keys and tensors begin with.
type modality struct{ name, keys, tensors string }

var (
	vision = modality{"vision", "clip.vision.", "v."}
	audio  = modality{"audio", "clip.audio.", "a."}
)

// keys reads the metadata of one tower; the first fault is kept.
type keys struct {
	file *gguf.File
	modality
	err error
}

func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}

// number reads an integer of [1, most]; def is what a file without it has, −1 makes it
// required.
func (k *keys) number(key string, def, most int) int {
	v, ok := k.file.Uint(k.keys + key)
	switch {
	case !ok && def >= 0:
		return def
	case !ok:
		k.fail("key %q is missing or no number", k.keys+key)
		return 1
	case v < 1 || v > uint64(most):
		k.fail("key %q: %d is not in 1 … %d", k.keys+key, v, most)
		return 1
	}
	return int(v)
}

// real reads a number.
func (k *keys) real(key string, def float64) float64 {
	v, ok := k.file.Float(k.keys + key)
	if !ok {
		return def
	}
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		k.fail("key %q is %v", k.keys+key, v)
	}
	return v
}

// three reads one value for each colour.
func (k *keys) three(key string) (out [3]float32) {
	vs, _ := k.file.Floats(k.keys + key)
	if len(vs) != 3 {
		k.fail("key %q has %d values, want one for each of three colours", k.keys+key, len(vs))
		return out
	}
	for i, v := range vs {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			k.fail("key %q: value %d is %v", k.keys+key, i, v)
		}
		out[i] = v
	}
	return out
}

// facts are what every tower has.
type facts struct {
	family  string
	width   int // of a row inside the tower
	hidden  int // of the feed-forward networks; tensors have the last word
	layers  int
	heads   int
	headDim int
	eps     float32
	out     int // projection_dim
}

func (k *keys) facts(family string) facts {
	f := facts{family: family, width: k.number("embedding_length", -1, maxWidth), hidden: k.number("feed_forward_length", -1, maxWidth),
		layers: k.number("block_count", -1, maxLayers), heads: k.number("attention.head_count", -1, maxWidth),
		eps: float32(k.real("attention.layer_norm_epsilon", 1e-6)), out: k.number("projection_dim", -1, maxWidth)}
	if k.err == nil && f.width%f.heads != 0 {
		k.fail("keys %q and %q: %d columns do not divide over %d heads", k.keys+"embedding_length", k.keys+"attention.head_count", f.width, f.heads)
	}
	f.headDim = max(1, f.width/max(f.heads, 1))
	return f
}

// canvas is what every tower of pictures has.
type canvas struct {
	side, patch int
	mean, std   [3]float32
}

func (k *keys) canvas() canvas {
	c := canvas{side: k.number("image_size", -1, maxSide), patch: k.number("patch_size", -1, maxPatch),
		mean: k.three("image_mean"), std: k.three("image_std")}
	for i, s := range c.std {
		if !(s > 0) {
			k.fail("key %q: value %d is %v", k.keys+"image_std", i, s)
		}
	}
	return c
}

// projectors reads which families the file's towers are of; "" is no tower.
func projectors(f *gguf.File) (see, hear string, err error) {
	if a := f.Architecture(); a != "clip" {
		return "", "", fmt.Errorf("architecture %q is no encoder (clip)", a)
	}
	common, _ := f.String("clip.projector_type")
	of := func(m modality) string {
		if has, _ := f.Bool("clip.has_" + m.name + "_encoder"); !has {
			return ""
		}
		name := common
		if name == "" {
			name, _ = f.String(m.keys + "projector_type")
		}
		if name == "qwen2.5o" {
			name = map[string]string{"vision": "qwen2.5vl_merger", "audio": "qwen2a"}[m.name]
		}
		if name == "" {
			err = fmt.Errorf("key %q is missing", m.keys+"projector_type")
		}
		return name
	}
	see, hear = of(vision), of(audio)
	if see == "" && hear == "" && err == nil {
		err = errors.New("has an encoder neither for pictures nor for sound")
	}
	return see, hear, err
}
