package compute

import (
	"fmt"

	"ganglion/gpu/ops"
)

// Stages of the attention kernel, by its constant STAGE.
const (
	stageAll = iota
	stageScores
	stageValues
	stageChunk
)

const (
	attentionQueries = 4  // that a workgroup computes together: heads × rows
	attentionWG      = 64 // invocations of a workgroup

	// splitRows is the largest number of rows whose chunks are spread over workgroups.
	// More rows keep a device busy by themselves, and their intermediate results would
	// need much memory.
	splitRows = 8

	// wholeChunks is the largest number of chunks that a workgroup does one after
	// another on a software renderer, for all its rows together: a chunk takes fewer than
	// 512 rounds of its loops.
	wholeChunks = loopRounds / 512

	// splitBytes bounds the intermediate results of one attention.
	splitBytes = 32 << 20
)

// attentionPlan is how one attention is cut into workgroups.
type attentionPlan struct {
	op     *ops.Attention
	cache  ops.Cache
	share  int   // query heads of a KV head
	heads  int   // of them in a workgroup
	units  int   // workgroups of a row: KV heads × groups of heads
	chunks int   // that a row can see at most
	rows   int   // that the program is compiled for
	left   int64 // bytes that a workgroup leaves of a chunk

	part    region
	whole   staged // in part: the output as whole numbers; without memory where it is not wanted
	wholeAt int    // first texel of it in part

	texels  bool // keys, values and queries are fetched as texels
	queries region
	q       params // where a query begins: row 0, from row to row, from head to head
}

// attention lowers to one dispatch where a row's chunks are done by one workgroup, and
// otherwise to one for each pass over the chunks, the last workgroup of which joins them.
// With whole the output is also written as whole numbers.
func (l *lowering) attention(o *ops.Attention, whole bool) (staged, error) {
	a := l.planAttention(o)
	if err := l.placeQueries(&a); err != nil {
		return staged{}, err
	}
	if need, most := a.sharedBytes(l.exact()), l.rt.b.dev.Limits().SharedBytes; need > most {
		return staged{}, fmt.Errorf("keys of %d columns need %d bytes of shared memory, the device has %d: %w",
			a.cache.KeyDim, need, most, ops.ErrUnsupported)
	}
	software := l.rt.b.dev.Info().Software
	stages := []uint32{stageChunk}
	if l.exact() {
		stages = []uint32{stageScores, stageValues}
	}
	if a.chunks == 1 || (a.rows > splitRows || a.bytes() > splitBytes) && (a.chunks <= wholeChunks || !software) {
		stages = []uint32{stageAll}
	}
	a.placePart(l, stages[0] != stageAll, whole)
	for i, stage := range stages {
		if err := l.attend(a, stage, i == len(stages)-1); err != nil {
			return staged{}, err
		}
	}
	return a.whole, nil
}

// placePart makes room for what stages leave to each other and, behind it, for the whole
// numbers: a kernel has one binding for both.
func (a *attentionPlan) placePart(l *lowering, split, whole bool) {
	var apart int64
	if split {
		apart = align(a.bytes())
	}
	if whole {
		a.whole = l.wholeRows(a.op.Out.Width, a.rows)
		size := a.whole.size
		l.tempAt = a.whole.offset // taken back
		a.part = l.scratch(apart + size)
		a.whole.offset, a.wholeAt = a.part.offset+apart, int(apart/texel)
		return
	}
	a.part = l.batchBuffer() // not looked at
	if split {
		a.part = l.scratch(apart)
	}
}

func (l *lowering) planAttention(o *ops.Attention) attentionPlan {
	c := l.plan.Caches[o.Cache]
	a := attentionPlan{op: o, cache: c, share: o.Heads / c.KVHeads, rows: l.capacity(o.Q)}
	a.heads = min(a.share, attentionQueries)
	if a.heads == 3 {
		a.heads = 4
	}
	a.units = c.KVHeads * ((a.share + a.heads - 1) / a.heads)
	a.chunks = min(l.chunks, o.Chunks(l.rt.opts))
	data := 4 * ((c.ValueDim + 3) / 4)
	if l.exact() {
		data = max(data, ops.KVChunk)
	}
	a.left = 16 * int64(2+data)
	return a
}

// How queries that are fetched as texels lie: constant COPY of headstore.glsl.
const (
	queriesThere  = iota // among the activations
	queriesCopied        // in a copy in which heads are whole units
	queriesHalves        // the same, rounded to halves, for an exact attention over halves
)

// queryForm tells whether the kernel of an attention fetches queries, and how they lie.
func (l *lowering) queryForm(o *ops.Attention) (fetched bool, form int) {
	q, dim := l.operand(o.Q), l.plan.Caches[o.Cache].KeyDim
	keys, values, _ := l.cache(o.Cache)
	switch {
	case !l.fetches(max(keys.bytes(), values.bytes(), q.bytes())):
		return false, queriesThere
	case l.exact() && l.rt.opts.KV == ops.KVF16:
		return true, queriesHalves
	case dim%8 == 0 && q.at%4 == 0 && q.stride%4 == 0:
		return true, queriesThere
	}
	return true, queriesCopied
}

// queryCopy is room for a copy of an attention's queries.
func (l *lowering) queryCopy(o *ops.Attention) staged {
	stride := o.Heads * l.paddedHead(o)
	return staged{region: l.scratch(4 * int64(l.capacity(o.Q)*stride)), stride: stride / 4}
}

// paddedHead is the width of a head of queries in a copy.
func (l *lowering) paddedHead(o *ops.Attention) int {
	return (l.plan.Caches[o.Cache].KeyDim + 7) &^ 7
}

// placeQueries decides how the kernel reads queries: from the activations, or as texels
// of the activations or of a copy, which what made the queries may have left.
func (l *lowering) placeQueries(a *attentionPlan) error {
	o, q, dim := a.op, l.operand(a.op.Q), a.cache.KeyDim
	fetched, form := l.queryForm(o)
	a.texels = fetched
	switch {
	case !fetched:
		a.q = params{}.view(q).i32(dim)
		return nil
	case form == queriesThere:
		a.queries, a.q = q.region, params{}.u32(q.at/4, q.stride/4).i32(dim/4)
		return nil
	}
	padded := l.paddedHead(o)
	s, made := l.staged[queriesKey(o)]
	if !made {
		s = l.queryCopy(o)
	}
	a.queries, a.q = s.region, params{}.i32(0, s.stride, padded/4)
	if made {
		return nil
	}
	return l.dispatch(dispatch{
		kernel: "attention_queries",
		bind:   []region{l.batchBuffer(), q.region, a.queries},
		params: params{}.u32(l.rows(o.Q).count).i32(o.Heads, dim, flag(form == queriesHalves)).view(q),
		groups: [3]int{groupsOf(o.Heads * padded), a.rows},
		reads:  l.views(o.Q),
		writes: regions(a.queries),
	})
}

// fetches tells whether buffers of up to so many bytes are read by texel fetches, which
// is for software renderers: gpu/kernels/README.md.
func (l *lowering) fetches(bytes int64) bool {
	return l.rt.b.dev.Info().Software && 16*l.rt.b.dev.Limits().Texels >= bytes
}

// bytes is the size of what stages leave to the next: PART_SIZE of attention_rows.glsl
// for every workgroup and chunk.
func (a attentionPlan) bytes() int64 { return int64(a.rows*a.units*a.chunks) * a.left }

// sharedBytes is what attention.glsl has in shared memory.
func (a attentionPlan) sharedBytes(exact bool) int {
	weights, kept := 8*ops.KVChunk, 0
	if exact {
		weights, kept = 16*ops.KVChunk, 63 // KEPT_CHUNKS
	}
	mem := attentionWG + 2*kept
	if !a.texels {
		mem += (a.cache.KeyDim + 7) &^ 7 // QUERY_QUADS for each of four queries
	}
	return weights + 16*mem + 4 // arrived
}

func (a attentionPlan) constants(stage, rows uint32) []uint32 {
	o, whole := a.op, a.whole.mem != nil && stage != stageScores
	return []uint32{attentionWG, uint32(a.heads), rows, uint32(a.cache.KeyDim), uint32(a.cache.ValueDim), stage,
		uint32(flag(o.Sinks != nil)), uint32(flag(o.ALiBi != 0)), uint32(flag(o.Softcap > 0)), uint32(flag(whole))}
}

func (l *lowering) attend(a attentionPlan, stage uint32, last bool) error {
	o := a.op
	keys, values, group := l.cache(o.Cache)
	d := dispatch{
		kernel:    l.variant("attention_" + kvName(l.rt.opts.KV)),
		constants: a.constants(stage, 1),
		groups:    [3]int{a.units * a.chunks, a.rows},
		reads:     append(l.views(o.Q), regions(keys, values)...),
	}
	chunks, counts := a.chunks, l.batchBuffer() // not looked at
	switch {
	case stage == stageAll:
		rows := 1
		if software := l.rt.b.dev.Info().Software; a.rows > 1 && (a.chunks*attentionQueries/a.heads <= wholeChunks || !software) {
			rows = attentionQueries / a.heads
		}
		d.constants = a.constants(stage, uint32(rows))
		d.groups = [3]int{a.units, (a.rows + rows - 1) / rows}
		chunks = 1
	case last:
		counts = l.counters(a.rows * a.units)
		d.writes = regions(counts)
		fallthrough
	default:
		d.writes = append(d.writes, regions(a.part)...)
	}
	if stage == stageValues {
		d.reads = append(d.reads, regions(a.part)...)
	}
	if last {
		d.writes = append(d.writes, a.written(l)...)
	}
	d.bind = []region{l.batchBuffer(), l.arena(o.Q), keys, values, l.perHead(o), counts, a.part}
	if a.texels {
		d.kernel += "_texels"
		d.bind = append(d.bind, a.queries)
		d.reads = append(d.reads, regions(a.queries)...)
	}
	d.params = l.attentionParams(a, group, chunks)
	cells := int64(a.rows) * int64(a.chunks) * ops.KVChunk
	d.bytes = cells * int64(a.cache.KVHeads) * (headBytes(l.rt.opts.KV, a.cache.KeyDim) + headBytes(l.rt.opts.KV, a.cache.ValueDim))
	d.flops = 2 * cells * int64(o.Heads) * int64(a.cache.KeyDim+a.cache.ValueDim)
	return l.dispatch(d)
}

// written is what the last dispatch of an attention writes.
func (a attentionPlan) written(l *lowering) []touch {
	w := l.views(a.op.Out)
	if a.whole.mem != nil {
		w = append(w, regions(a.whole.region)...)
	}
	return w
}

// attentionParams are the Params of attention_rows.glsl.
func (l *lowering) attentionParams(a attentionPlan, group, chunks int) params {
	o, rows := a.op, l.rows(a.op.Q)
	lo, hi := l.batch.seenOf(o, rows)
	p := params{}.u32(rows.count, rows.pos, rows.seq, l.batch.pagesOf(group), uint32(l.batch.pageN)).
		bytes(a.q).view(l.operand(o.Out)).
		i32(a.cache.KVHeads, a.share).u32(lo, hi).i32(chunks, attentionQueries).
		f32(o.Scale, o.Softcap)
	inverse := float32(0)
	if o.Softcap > 0 {
		inverse = 1 / o.Softcap
	}
	return p.f32(inverse).i32(a.wholeAt, a.whole.stride)
}

// variant is the kernel of a name for the numerics of the runtime.
func (l *lowering) variant(name string) string {
	if l.exact() {
		return name
	}
	return name + "_fast"
}

// arena binds the activations that a view lies in.
func (l *lowering) arena(v ops.View) region { return l.operand(v).region }

// kvName is the part of a kernel's name that says what a cache holds.
func kvName(kv ops.KVType) string {
	if kv == ops.KVQ8 {
		return "q8"
	}
	return kv.String()
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// perHead binds what an attention has of each head: sinks, then slopes of ALiBi.
func (l *lowering) perHead(o *ops.Attention) region {
	if r, ok := l.rt.slopes[o]; ok {
		return r
	}
	return l.vector(o.Sinks)
}

// describeSlopes decides where the slopes of the attention operations will lie, behind
// copies of their sinks.
func (r *Runtime) describeSlopes(s *slabs) error {
	r.slopes = make(map[*ops.Attention]region)
	for _, op := range r.plan.Ops {
		o, ok := op.(*ops.Attention)
		if !ok || o.ALiBi == 0 {
			continue
		}
		at, err := s.take(4 * int64(o.Heads) * int64(1+flag(o.Sinks != nil)))
		if err != nil {
			return fmt.Errorf("slopes of %d heads: %w", o.Heads, err)
		}
		r.slopes[o] = at
	}
	return nil
}

func (r *Runtime) uploadSlopes() error {
	for o, at := range r.slopes {
		var data []byte
		if o.Sinks != nil {
			var err error
			if data, err = appendVector(data, o.Sinks); err != nil {
				return err
			}
		}
		if err := r.write(at, 0, appendFloats(data, ops.ALiBiSlopes(o.Heads, o.ALiBi))); err != nil {
			return err
		}
	}
	return nil
}
