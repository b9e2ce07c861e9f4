package model

import (
	"fmt"
	"math"
)

// params are the hyper-parameters every architecture shares, with the defaults of
// engine-spec: per-layer values are slices of length blocks.
type params struct {
	arch    string
	blocks  int
	embd    int
	context int // trained
	runCtx  int // configured
	vocab   int

	heads, kvHeads, ff []int
	keyLen, valueLen   int // of a head; the next two on local layers
	keyLenSWA          int
	valueLenSWA        int
	ropeDim            int
	ropeDimSWA         int
	ropeSections       [4]int // of M-RoPE, all 0 when not given
	ropeBase           float64
	ropeBaseSWA        float64
	scaling            scaling
	eps                float32 // of RMSNorm; 0 = not given
	layerEps           float32 // of LayerNorm; 0 = not given
	window             int
	pattern            []bool // true = local layer; nil = not given
	period             int    // sliding_window_pattern as a number; 0 = not given
	attnScale          float64
	finalSoftcap       float64

	expertParams
}

// scaling is rope.scaling.* of the file.
type scaling struct {
	kind        string // none, linear, yarn, longrope
	factor      float64
	origContext int
	attnFactor  float64
	betaFast    float64
	betaSlow    float64
	logMul      float64
}

// maxBlocks bounds block_count, so that a hostile file cannot ask for a plan of
// 2³² layers; the deepest models published have fewer than 200.
const maxBlocks = 1024

// maxHead bounds the width of a head; the widest published are 576.
const maxHead = 1 << 16

// maxFeedForward bounds feed_forward_length in the same way: every layer's
// activations are checked column by column. The largest published is 53,248.
const maxFeedForward = 1 << 18

type reader struct {
	src  Source
	arch string
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// dim reads a positive integer key below 2²⁴; def < 0 makes it required.
func (r *reader) dim(key string, def int) int {
	key = r.arch + "." + key
	v, ok := r.src.Uint(key)
	switch {
	case !ok && def < 0:
		r.fail("key %q is missing or not a number", key)
	case !ok:
		return def
	case v >= 1<<24:
		r.fail("key %q: %d is out of range", key, v)
	}
	return int(v)
}

// has tells whether the file has a number under a key.
func (r *reader) has(key string) bool {
	_, ok := r.src.Float(r.arch + "." + key)
	return ok
}

// need reads a required number.
func (r *reader) need(key string) float64 {
	if !r.has(key) {
		r.fail("key %q is missing or not a number", r.arch+"."+key)
	}
	return r.float(key, 0)
}

// positive reads a number that must not be negative.
func (r *reader) positive(key string, def float64) float64 {
	v := r.float(key, def)
	if v < 0 {
		r.fail("key %q: %v is negative", r.arch+"."+key, v)
	}
	return v
}

// flag reads a boolean.
func (r *reader) flag(key string, def bool) bool {
	if v, ok := r.src.Bool(r.arch + "." + key); ok {
		return v
	}
	return def
}

// needFlag reads a required boolean.
func (r *reader) needFlag(key string) bool {
	if _, ok := r.src.Bool(r.arch + "." + key); !ok {
		r.fail("key %q is missing or not a boolean", r.arch+"."+key)
	}
	return r.flag(key, false)
}

// flags reads an array of booleans with one for every layer; nil when the file has no
// array.
func (r *reader) flags(key string, blocks int) []bool {
	bs := r.booleans(key)
	if bs != nil && len(bs) < blocks {
		r.fail("key %q has %d values for %d layers", r.arch+"."+key, len(bs), blocks)
		return make([]bool, blocks)
	}
	return bs
}

// pattern reads an array of booleans that may end before the last layer; the layers
// behind its end have the value rest. nil when the file has no array.
func (r *reader) pattern(key string, blocks int, rest bool) []bool {
	bs := r.booleans(key)
	for bs != nil && len(bs) < blocks {
		bs = append(bs, rest)
	}
	return bs
}

// booleans reads an array of booleans, which newer files write as integers; nil when
// the file has none.
func (r *reader) booleans(key string) []bool {
	key = r.arch + "." + key
	out := []bool{}
	if bs, ok := r.src.Bools(key); ok {
		return append(out, bs...)
	}
	ns, ok := r.src.Ints(key)
	if !ok {
		return nil
	}
	for _, n := range ns {
		out = append(out, n != 0)
	}
	return out
}

// epsilon reads the epsilon of a norm, 0 when the file has none.
func (r *reader) epsilon(key string) float32 {
	v := float32(r.float(key, 0))
	if r.has(key) && !(v >= 0 && v < 1) {
		r.fail("key %q: %v is not in [0, 1)", r.arch+"."+key, v)
	}
	return v
}

func (r *reader) float(key string, def float64) float64 {
	v, ok := r.src.Float(r.arch + "." + key)
	if !ok {
		return def
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		r.fail("key %q is %v", r.arch+"."+key, v)
	}
	return v
}

// perLayer reads a scalar or a per-layer array.
func (r *reader) perLayer(key string, blocks, def int) []int {
	out := make([]int, blocks)
	if vs, ok := r.src.Ints(r.arch + "." + key); ok {
		if len(vs) < blocks {
			r.fail("key %q has %d values for %d layers", r.arch+"."+key, len(vs), blocks)
			return out
		}
		for i := range out {
			if vs[i] < 0 || vs[i] >= 1<<24 {
				r.fail("key %q: value %d of layer %d is out of range", r.arch+"."+key, vs[i], i)
			}
			out[i] = int(vs[i])
		}
		return out
	}
	v := r.dim(key, def)
	for i := range out {
		out[i] = v
	}
	return out
}

func readParams(f Source, arch string, o Options) (*params, error) {
	r := &reader{src: f, arch: arch}
	p := &params{arch: arch}
	p.blocks = r.dim("block_count", -1)
	if p.blocks < 1 || p.blocks > maxBlocks {
		r.fail("key %q: %d layers", arch+".block_count", p.blocks)
	}
	if r.err != nil {
		return nil, r.err
	}
	p.blocks -= r.dim("nextn_predict_layers", 0) // MTP blocks stand at the end and are not run
	p.embd = r.dim("embedding_length", -1)
	p.context = r.dim("context_length", -1)
	p.runCtx = o.Context
	if p.runCtx <= 0 {
		p.runCtx = p.context
	}
	if r.err == nil && (p.blocks < 1 || p.embd < 1 || p.context < 1) {
		r.fail("keys %q, %q and %q: %d layers, embedding length %d, context length %d", arch+".block_count",
			arch+".embedding_length", arch+".context_length", p.blocks, p.embd, p.context)
	}
	if r.err != nil {
		return nil, r.err
	}
	readAttention(r, p)
	p.ff = r.perLayer("feed_forward_length", p.blocks, 0)
	for il, n := range p.ff {
		if n > maxFeedForward {
			r.fail("key %q: %d in layer %d is more than %d", arch+".feed_forward_length", n, il, maxFeedForward)
		}
	}
	p.expertParams = readExperts(r, p.blocks)
	p.finalSoftcap = r.float("final_logit_softcapping", 0)
	readRoPE(r, p)
	return p, r.err
}

func readAttention(r *reader, p *params) {
	p.heads = r.perLayer("attention.head_count", p.blocks, 0)
	p.kvHeads = r.perLayer("attention.head_count_kv", p.blocks, p.heads[0])
	if _, ok := r.src.Uint(p.arch + ".attention.head_count_kv"); !ok {
		if _, ok := r.src.Ints(p.arch + ".attention.head_count_kv"); !ok {
			p.kvHeads = p.heads
		}
	}
	head := 0
	for il, h := range p.heads {
		if h < 0 || p.kvHeads[il] < 0 || (p.kvHeads[il] > 0 && h%p.kvHeads[il] != 0) {
			r.fail("keys %q and %q: %d heads of layer %d do not divide over %d KV heads", p.arch+".attention.head_count",
				p.arch+".attention.head_count_kv", h, il, p.kvHeads[il])
		}
		if head == 0 && h > 0 {
			head = h
		}
	}
	def := 0
	if head > 0 {
		def = p.embd / head
	}
	p.keyLen = r.dim("attention.key_length", def)
	p.valueLen = r.dim("attention.value_length", def)
	p.keyLenSWA = r.dim("attention.key_length_swa", p.keyLen)
	p.valueLenSWA = r.dim("attention.value_length_swa", p.valueLen)
	for _, w := range []struct {
		key string
		n   int
	}{
		{"key_length", p.keyLen}, {"value_length", p.valueLen}, {"key_length_swa", p.keyLenSWA}, {"value_length_swa", p.valueLenSWA},
	} {
		if head > 0 && (w.n < 1 || w.n > maxHead) {
			r.fail("key %q: heads %d wide", p.arch+".attention."+w.key, w.n)
		}
	}
	p.attnScale = r.float("attention.scale", 0)
	p.eps = r.epsilon("attention.layer_norm_rms_epsilon")
	p.layerEps = r.epsilon("attention.layer_norm_epsilon")
	p.window = r.dim("attention.sliding_window", 0)
	p.pattern = r.pattern("attention.sliding_window_pattern", p.blocks, false)
	if n, ok := r.src.Uint(p.arch + ".attention.sliding_window_pattern"); ok && n < 1<<16 {
		p.period = int(n)
	}
}

func readRoPE(r *reader, p *params) {
	p.ropeDim = r.dim("rope.dimension_count", p.keyLen)
	p.ropeDimSWA = r.dim("rope.dimension_count_swa", p.ropeDim)
	readSections(r, p)
	p.ropeBase = r.float("rope.freq_base", 10000)
	p.ropeBaseSWA = r.float("rope.freq_base_swa", 0)
	if p.ropeDim > p.keyLen || p.ropeDim%2 != 0 {
		r.fail("key %q: %d columns of heads %d wide", p.arch+".rope.dimension_count", p.ropeDim, p.keyLen)
	}
	if p.ropeDimSWA > p.keyLenSWA || p.ropeDimSWA%2 != 0 {
		r.fail("key %q: %d columns of heads %d wide", p.arch+".rope.dimension_count_swa", p.ropeDimSWA, p.keyLenSWA)
	}
	if !(p.ropeBase > 0) {
		r.fail("key %q: %v is not positive", p.arch+".rope.freq_base", p.ropeBase)
	}
	s := &p.scaling
	s.kind = "linear"
	if k, ok := r.src.String(p.arch + ".rope.scaling.type"); ok {
		s.kind = k
	}
	s.factor = r.float("rope.scaling.factor", r.float("rope.scale_linear", 0))
	if s.factor == 0 || s.kind == "none" {
		s.factor = 1
	}
	s.origContext = r.dim("rope.scaling.original_context_length", p.context)
	s.attnFactor = r.float("rope.scaling.attn_factor", 1)
	s.betaFast = r.float("rope.scaling.yarn_beta_fast", 32)
	s.betaSlow = r.float("rope.scaling.yarn_beta_slow", 1)
	s.logMul = r.float("rope.scaling.yarn_log_multiplier", 0)
	if s.kind == "yarn" {
		checkYaRN(r, p)
	}
	switch s.kind {
	case "none", "linear", "yarn", "longrope":
	default:
		r.fail("key %q: %q is not known (none, linear, yarn, longrope)", p.arch+".rope.scaling.type", s.kind)
	}
	if !(s.factor > 0) {
		r.fail("key %q: %v is not positive", p.arch+".rope.scaling.factor", s.factor)
	}
}

// checkYaRN checks what a table of YaRN divides by or takes the logarithm of.
func checkYaRN(r *reader, p *params) {
	s := p.scaling
	for _, k := range []struct {
		key string
		ok  bool
		v   float64
	}{
		{"rope.scaling.original_context_length", s.origContext > 0, float64(s.origContext)},
		{"rope.scaling.yarn_beta_fast", s.betaFast > 0, s.betaFast},
		{"rope.scaling.yarn_beta_slow", s.betaSlow > 0, s.betaSlow},
		{"rope.freq_base", p.ropeBase != 1, p.ropeBase},
	} {
		if !k.ok {
			r.fail("key %q: %v has no meaning for YaRN", p.arch+"."+k.key, k.v)
		}
	}
}

// readSections reads rope.dimension_sections: up to four numbers, or one.
func readSections(r *reader, p *params) {
	key := p.arch + ".rope.dimension_sections"
	vs, _ := r.src.Ints(key)
	if v, ok := r.src.Uint(key); ok {
		vs = []int64{int64(v)}
	}
	if len(vs) > len(p.ropeSections) {
		r.fail("key %q has %d values", key, len(vs))
		return
	}
	for i, v := range vs {
		if v < 0 || v > int64(p.keyLen) {
			r.fail("key %q: section of %d", key, v)
			return
		}
		p.ropeSections[i] = int(v)
	}
}

// local tells whether a layer attends to a sliding window; period is the
// architecture's own default (every period-th layer is global), 0 for none.
func (p *params) local(il, period int) bool {
	if p.window <= 0 {
		return false
	}
	if p.pattern != nil {
		return p.pattern[il]
	}
	if p.period > 0 {
		period = p.period
	}
	return period > 0 && il%period < period-1
}

// localAfterGlobal is local for architectures whose pattern begins with the global
// layer: every period-th layer from the first.
func (p *params) localAfterGlobal(il, period int) bool {
	if p.window <= 0 || p.pattern != nil {
		return p.local(il, period)
	}
	if p.period > 0 {
		period = p.period
	}
	return period > 0 && il%period != 0
}

// localBase is rope.freq_base_swa, or a family's default.
func (p *params) localBase(def float64) float64 {
	if p.ropeBaseSWA > 0 {
		return p.ropeBaseSWA
	}
	return def
}
