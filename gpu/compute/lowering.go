package compute

import (
	"errors"
	"fmt"
	"slices"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// errLowering is a fault of this package: a plan was turned into dispatches that would
// read what none of them has written.
var errLowering = errors.New("compute: internal fault")

// lowering turns a plan into a list of dispatches for one shape of batch and one bucket
// of KV length. The methods of op_*.go append the dispatches of an operation; they say
// what each reads and writes, and dispatch decides where a barrier is needed.
type lowering struct {
	rt     *Runtime
	plan   *ops.Plan
	shape  ops.Shape
	chunks int // chunks of ops.KVChunk positions, from position 0, that rows can see
	batch  *batchLayout

	list    []dispatch
	top     []dispatch // what chooses the best tokens, for batches that want some
	stats   []dispatch // what makes statistics, for batches that want some
	tempAt  int64      // first free byte of Runtime.temp
	countAt int64      // first free byte of Runtime.counts
	staged  map[stageKey]staged

	// unstored are buffers whose present contents exist in a staged form alone.
	unstored map[ops.Buf]bool

	// Since the last barrier.
	read, written []touch

	pace    float64           // the scale by which it is divided
	longest float64           // assumed time of the longest dispatch, in seconds
	bounded bool              // divided further than it would be on a faster device
	needs   map[*memory]int64 // bytes of what programs share
}

// dispatch is one command before it is recorded.
type dispatch struct {
	kernel    string   // of gpu/kernels
	constants []uint32 // by Shader.Constants; fewer leave the rest at their defaults
	bind      []region // by binding number
	params    params
	groups    [3]int // 0 counts as 1

	// What the kernel reads and writes of activations, caches, states and intermediate
	// results. Weights, tables and the batch do not change during a run and are left out.
	reads, writes []touch

	// The work, for the prediction of its time. Bytes of 0 are taken from reads and
	// writes.
	bytes, flops int64

	shader  *device.Shader
	barrier bool
}

// lower gives the dispatches of a plan.
func lower(r *Runtime, s ops.Shape, chunks int) (*lowering, error) {
	l := &lowering{rt: r, plan: r.plan, shape: s, chunks: chunks, batch: newBatchLayout(r.plan, r.paging, s, chunks), pace: r.b.pace.scale(),
		staged: make(map[stageKey]staged), unstored: make(map[ops.Buf]bool), needs: make(map[*memory]int64)}
	l.want(r.batch, 4*int64(l.batch.words))
	l.want(r.embeds, 4*int64(s.Rows)*int64(r.plan.EmbedWidth()))
	l.want(r.arena[ops.PerRow], 4*int64(s.Rows)*int64(r.layout.RowWidth))
	l.want(r.arena[ops.PerOut], 4*int64(s.Outs)*int64(r.layout.OutWidth))
	for i := 0; i < len(l.plan.Ops); {
		if l.tempAt > l.rt.b.tempWrap && !l.owes(i) {
			l.tempAt = 0
			clear(l.staged)
		}
		n, err := l.run(i)
		if err != nil {
			return nil, fmt.Errorf("operation %d (%s): %w", i, l.plan.Ops[i].Name(), err)
		}
		i += n
	}
	return l, l.lowerHeads()
}

// owes tells whether an operation from i on reads what exists in a staged form alone.
func (l *lowering) owes(i int) bool {
	for b := range l.unstored {
		for _, op := range l.plan.Ops[i:] {
			touches := func(v ops.View) bool { return v.Buf == b }
			if slices.ContainsFunc(op.Reads(), touches) {
				return true
			}
			if slices.ContainsFunc(op.Writes(), touches) {
				break
			}
		}
	}
	return false
}

// lowerHeads appends what reads heads to the list and makes the lists of the best tokens
// and of statistics.
func (l *lowering) lowerHeads() error {
	if err := l.readBest(); err != nil {
		return fmt.Errorf("heads: %w", err)
	}
	if l.rt.b.dev.Info().Software {
		return nil // neither is run: see apart
	}
	list := l.list
	for _, apart := range []struct {
		list *[]dispatch
		make func() error
	}{{&l.top, l.readTop}, {&l.stats, l.readStats}} {
		l.list = nil
		if err := apart.make(); err != nil {
			return fmt.Errorf("heads: %w", err)
		}
		*apart.list = l.list
	}
	l.list = list
	return nil
}

// want raises what the lowering needs of a memory.
func (l *lowering) want(m *memory, bytes int64) { l.needs[m] = max(l.needs[m], bytes) }

// inTime tells whether what takes so many seconds on an unknown device may be one dispatch.
func (l *lowering) inTime(seconds float64) bool {
	return l.pace*seconds <= l.rt.b.opts.Dispatch.Seconds()
}

// claim raises what is needed of memories to what the lowering needs, before it is recorded.
func (l *lowering) claim() {
	for m, bytes := range l.needs {
		m.need = max(m.need, bytes)
	}
}

// run appends the dispatches of operation i, or of the fusion that begins with it, and
// gives how many operations they cover. Forms of what is written are forgotten: by an
// operation when it is done, and before a fusion, which may make new ones.
func (l *lowering) run(i int) (covered int, err error) {
	f := l.rt.fused[i]
	if f == nil {
		op := l.plan.Ops[i]
		err := l.op(op)
		l.unstage(op.Writes())
		return 1, err
	}
	for _, op := range l.plan.Ops[i : i+f.count()] {
		l.unstage(op.Writes())
	}
	return f.count(), f.lower(l)
}

// op appends the dispatches of an operation by itself.
func (l *lowering) op(op ops.Op) error {
	switch o := op.(type) {
	case *ops.Embed:
		return l.embed(o)
	case *ops.Deepstack:
		return l.deepstack(o)
	case *ops.MatMul:
		return l.matMul(o)
	case *ops.LowRank:
		return l.lowRank(o)
	case *ops.ExpertMatMul:
		return l.expertMatMul(o)
	case *ops.Attention:
		_, err := l.attention(o, false)
		return err
	case *ops.Route:
		return l.route(o)
	case *ops.ExpertSum:
		return l.expertSum(o)
	case *ops.ShortConv:
		return l.shortConv(o)
	case *ops.Mamba1:
		return l.mamba1(o)
	case *ops.Mamba2:
		return l.mamba2(o)
	case *ops.GatedDelta:
		return l.gatedDelta(o)
	case *ops.Rows:
		return l.pickRows(o)
	case *ops.Gather:
		return l.gather(o)
	case *ops.RMSNorm:
		return l.rmsNorm(o)
	case *ops.LayerNorm:
		return l.layerNorm(o)
	case *ops.L2Norm:
		return l.l2Norm(o)
	case *ops.Binary:
		return l.binary(o)
	case *ops.AddVec:
		return l.addVec(o)
	case *ops.Scale:
		return l.scale(o)
	case *ops.Unary:
		return l.unary(o)
	case *ops.GLU:
		return l.glu(o)
	case *ops.Softcap:
		return l.softcap(o)
	case *ops.PosScale:
		return l.posScale(o)
	case *ops.RoPE:
		return l.rope(o)
	case *ops.KVStore:
		return l.kvStore(o)
	}
	return ops.ErrUnsupported
}

// exact tells whether the lowering is for exact mode.
func (l *lowering) exact() bool { return l.rt.opts.Numerics == ops.Exact }

// dispatch checks a command against its shader and the device's limits and appends it,
// behind a barrier when it touches what was touched since the last one.
func (l *lowering) dispatch(d dispatch) error {
	if v, ok := l.rt.b.variants[d.kernel]; ok && !l.exact() {
		d.kernel = v
	}
	s := l.rt.b.opts.Shaders(d.kernel)
	if s == nil {
		return fmt.Errorf("no kernel %q: %w", d.kernel, ops.ErrUnsupported)
	}
	d.shader = s
	for i := range d.groups {
		d.groups[i] = max(d.groups[i], 1)
	}
	if err := d.check(l.rt.b.dev.Limits()); err != nil {
		return fmt.Errorf("kernel %s: %w", d.kernel, err)
	}
	if anyOverlap(d.reads, l.written) || anyOverlap(d.writes, l.written) || anyOverlap(d.writes, l.read) {
		d.barrier = true
		l.read, l.written = l.read[:0], l.written[:0]
	}
	l.read, l.written = append(l.read, d.reads...), append(l.written, d.writes...)
	if d.bytes == 0 {
		for _, t := range d.reads {
			d.bytes += l.touched(t)
		}
		for _, t := range d.writes {
			d.bytes += l.touched(t)
		}
	}
	l.longest = max(l.longest, assumed(&d))
	l.list = append(l.list, d)
	return nil
}

// check holds a dispatch against what its shader declares and what the device allows.
func (d *dispatch) check(limits device.Limits) error {
	switch {
	case len(d.bind) != len(d.shader.Bindings):
		return fmt.Errorf("%d bindings, the shader has %d", len(d.bind), len(d.shader.Bindings))
	case len(d.params) != d.shader.ParamBytes:
		return fmt.Errorf("%d bytes of parameters, the shader has %d", len(d.params), d.shader.ParamBytes)
	case len(d.constants) > len(d.shader.Constants):
		return fmt.Errorf("%d constants, the shader has %d", len(d.constants), len(d.shader.Constants))
	}
	if n := d.shader.SharedBytes(d.constants); n > limits.SharedBytes {
		return fmt.Errorf("%d bytes of shared memory, the device has %d: %w", n, limits.SharedBytes, device.ErrLimit)
	}
	for i, n := range d.groups {
		if int64(n) > limits.Groups[i] {
			return fmt.Errorf("%v workgroups, the device allows %v: %w", d.groups, limits.Groups, device.ErrLimit)
		}
	}
	for i, r := range d.bind {
		most := limits.BindingBytes
		if d.shader.Bindings[i].Texels {
			most = 16 * limits.Texels
		}
		if n := r.bytes(); n > most {
			return fmt.Errorf("binding %d (%s) of %d bytes, the device allows %d: %w", i, r.mem.name, n, most, device.ErrLimit)
		}
	}
	return nil
}

// touched is how many bytes a touch moves.
func (l *lowering) touched(t touch) int64 {
	if t.view.Width > 0 {
		return 4 * int64(t.view.Width) * int64(l.capacity(t.view))
	}
	return t.to - t.from
}

// operand is where the columns of a view lie: element at + row·stride + column of the
// arena that its region binds.
type operand struct {
	region
	at, stride uint32
	width      uint32
}

// operand finds a view.
func (l *lowering) operand(v ops.View) operand {
	width := l.rt.layout.RowWidth
	if l.set(v) == ops.PerOut {
		width = l.rt.layout.OutWidth
	}
	return operand{
		region: region{mem: l.rt.arena[l.set(v)], size: 4 * int64(width) * int64(l.capacity(v))},
		at:     uint32(l.rt.layout.Offset[v.Buf]*l.capacity(v) + l.rt.host[v.Buf].base + v.Off),
		stride: uint32(l.rt.widths[v.Buf]),
		width:  uint32(v.Width),
	}
}

// set is the row set of a view.
func (l *lowering) set(v ops.View) ops.RowSet { return l.plan.Buffers[v.Buf].Rows }

// capacity is the number of rows of a view that the program is compiled for: the rows
// that a grid covers.
func (l *lowering) capacity(v ops.View) int {
	if l.set(v) == ops.PerOut {
		return l.shape.Outs
	}
	return l.shape.Rows
}

// rows is where the batch buffer tells about the rows of a view.
func (l *lowering) rows(v ops.View) rowSections {
	if l.set(v) == ops.PerOut {
		return l.batch.out
	}
	return l.batch.row
}

// batchBuffer binds the batch buffer.
func (l *lowering) batchBuffer() region {
	return region{mem: l.rt.batch, size: 4 * int64(l.batch.words)}
}

// embedsBuffer binds Batch.Embeds, slice by slice: [1 + Plan.Slices, rows, Plan.Embed]
// floats.
func (l *lowering) embedsBuffer() region {
	return region{mem: l.rt.embeds, size: 4 * int64(l.shape.Rows) * int64(l.plan.EmbedWidth())}
}

// vector binds a small weight, widened to floats; without a weight it binds the batch
// buffer, for a kernel that does not look at it.
func (l *lowering) vector(w *ops.Weight) region {
	if r, ok := l.rt.vectors[w]; ok {
		return r
	}
	return l.batchBuffer()
}

// matrix is a packed weight.
func (l *lowering) matrix(w *ops.Weight) *matrix { return l.rt.matrices[w] }

// table binds a RoPE table: [context][cos NRot/2, sin NRot/2].
func (l *lowering) table(i int) region { return region{mem: l.rt.tables[i], size: l.rt.tables[i].need} }

// cache gives the bindings of a cache's keys and values and the group of its pages.
func (l *lowering) cache(i int) (keys, values region, group int) {
	k := l.rt.caches[i]
	return region{mem: k.keys, size: k.keys.need}, region{mem: k.values, size: k.values.need}, k.group
}

// state binds a recurrent state: [slots, floats].
func (l *lowering) state(i int) region { return region{mem: l.rt.states[i], size: l.rt.states[i].need} }

// tempWrap is how far an operation's intermediate results may lie behind those of the
// operation before; beyond it memory is used again. Neighbours therefore do not wait
// for each other because of them.
const tempWrap = 8 << 20

// scratch is memory for what an operation keeps between its dispatches. It is valid
// until the operation ends (and for views that were staged, until tempAt wraps) and holds
// anything at first.
func (l *lowering) scratch(bytes int64) region {
	r := region{mem: l.rt.temp, offset: l.tempAt, size: bytes}
	l.tempAt = align(l.tempAt + bytes)
	l.want(l.rt.temp, l.tempAt)
	return r
}

// counters are so many words that are 0 when a dispatch begins, and that it leaves at 0;
// no other one of the list has them.
func (l *lowering) counters(n int) region {
	r := region{mem: l.rt.counts, offset: l.countAt, size: 4 * int64(n)}
	l.countAt = align(l.countAt + r.size)
	l.want(l.rt.counts, l.countAt)
	return r
}

// views are the touches of views.
func (l *lowering) views(vs ...ops.View) []touch {
	var ts []touch
	for _, v := range vs {
		if v.Width == 0 {
			continue
		}
		if h, ok := l.rt.host[v.Buf]; ok {
			v.Buf, v.Off = h.buf, h.base+v.Off
		}
		from := 4 * int64(l.rt.layout.Offset[v.Buf]) * int64(l.capacity(v))
		ts = append(ts, touch{mem: l.rt.arena[l.set(v)], from: from,
			to: from + 4*int64(l.rt.widths[v.Buf])*int64(l.capacity(v)), view: v})
	}
	return ts
}

// regions are the touches of whole regions: scratch, caches, states.
func regions(rs ...region) []touch {
	var ts []touch
	for _, r := range rs {
		ts = append(ts, touch{mem: r.mem, from: r.offset, to: r.offset + r.bytes()})
	}
	return ts
}
