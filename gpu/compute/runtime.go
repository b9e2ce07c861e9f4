package compute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// Runtime is a loaded plan. It belongs to one goroutine at a time.
type Runtime struct {
	b      *Backend
	plan   *ops.Plan
	opts   ops.Options
	fused  map[int]fusion // by the number of their first operation
	stacks map[*ops.Weight]*stack
	host   map[ops.Buf]place // of buffers that lie in others
	layout ops.Layout        // of padded, see paddedLayout
	widths []int             // by buffer: elements from row to row
	paging *ops.Paging

	weights  []*memory
	matrices map[*ops.Weight]*matrix
	vectors  map[*ops.Weight]region
	slopes   map[*ops.Attention]region
	caches   []*cache  // by Plan.Caches
	states   []*memory // by Plan.States: [slots, floats]
	turned   []turned  // by Plan.States
	tables   []*memory // by Plan.Tables: [context, NRot]

	// What all programs share; it grows with the largest of them.
	arena  [2]*memory // activations by ops.RowSet
	temp   *memory    // what an operation keeps between its dispatches
	counts *memory    // counters of workgroups, 0 between dispatches
	batch  *memory
	embeds *memory // Batch.Embeds: [rows, Plan.Embed]
	heads  *memory // what is read back

	// unsettled: a submission failed, so that counters may have any value.
	unsettled bool

	page     []byte // of the host, for carrying
	programs map[*Program]struct{}
	closed   bool
}

func newRuntime(b *Backend, p *ops.Plan, o ops.Options) *Runtime {
	r := &Runtime{b: b, plan: p, opts: o, programs: make(map[*Program]struct{})}
	r.layout, r.widths = paddedLayout(p, p.Ops, nil)
	r.arena[ops.PerRow] = &memory{name: "activations", use: device.Scratch}
	r.arena[ops.PerOut] = &memory{name: "activations of outputs", use: device.Scratch}
	r.temp = &memory{name: "intermediate results", use: device.Scratch}
	r.counts = &memory{name: "counters", use: device.Scratch}
	r.batch = &memory{name: "batch", use: device.Upload}
	r.embeds = &memory{name: "embeddings of a batch", use: device.Upload}
	r.heads = &memory{name: "heads", use: device.Readback}
	return r
}

// paddedLayout is ops.NewLayout of a list of operations with every buffer as wide as
// whole groups of four elements, so that a kernel can read four at once from the start of
// any row. Buffers that have a host lie in it, as columns of its rows.
func paddedLayout(p *ops.Plan, list []ops.Op, host map[ops.Buf]place) (ops.Layout, []int) {
	padded := *p
	padded.Ops = hosted(list, host)
	padded.Buffers = append([]ops.Buffer{}, p.Buffers...)
	widths := make([]int, len(p.Buffers))
	for i := range padded.Buffers {
		widths[i] = (p.Buffers[i].Width + 3) &^ 3
		if h, ok := host[ops.Buf(i)]; ok {
			widths[i] = (h.width + 3) &^ 3
		}
		padded.Buffers[i].Width = widths[i]
	}
	layout := ops.NewLayout(&padded)
	for b, h := range host {
		layout.Offset[b] = layout.Offset[h.buf]
	}
	return layout, widths
}

// hosted are operations with the views of their buffers' hosts.
func hosted(list []ops.Op, host map[ops.Buf]place) []ops.Op {
	if len(host) == 0 {
		return list
	}
	views := func(vs []ops.View) []ops.View {
		vs = slices.Clone(vs)
		for i, v := range vs {
			if h, ok := host[v.Buf]; ok {
				vs[i] = ops.View{Buf: h.buf, Off: h.base + v.Off, Width: v.Width}
			}
		}
		return vs
	}
	all := make([]ops.Op, len(list))
	for i, op := range list {
		all[i] = &fused{Op: op, reads: views(op.Reads()), writes: views(op.Writes())}
	}
	return all
}

// load decides where everything lies, tries whether every operation can be lowered,
// and then allocates and uploads.
func (r *Runtime) load(ctx context.Context, progress func(done, total int64)) error {
	if err := r.describe(); err != nil {
		return err
	}
	if err := r.uploadWeights(ctx, progress); err != nil {
		return err
	}
	return r.newCaches()
}

// describe decides where everything lies and what is fused, and lowers the plan once.
func (r *Runtime) describe() error {
	if err := r.describeWeights(); err != nil {
		return err
	}
	if err := r.describeCaches(); err != nil {
		return err
	}
	r.fused = r.fuse()
	if err := r.describeChains(); err != nil {
		return err
	}
	r.layout, r.widths = paddedLayout(r.plan, together(r.plan.Ops, r.fused), r.host)
	l, err := lower(r, ops.Shape{Rows: 1, Outs: 1}, 1)
	if err == nil {
		l.claim()
	}
	return err
}

// allocate makes a memory as large as it is needed.
func (r *Runtime) allocate(m *memory) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	_, err := m.grow(r.b.dev)
	return err
}

// write copies data to a region, from byte at of it on.
func (r *Runtime) write(to region, at int64, data []byte) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	return to.mem.buf.Write(to.offset+at, data)
}

// shared lists the memories that grow with the programs.
func (r *Runtime) shared() []*memory {
	return []*memory{r.arena[0], r.arena[1], r.temp, r.counts, r.batch, r.embeds, r.heads}
}

// growShared makes room for all that was lowered so far. Recorded lists refer to the
// buffers, so they are dropped first; they are recorded again when they run next.
func (r *Runtime) growShared() error {
	enough := true
	for _, m := range r.shared() {
		enough = enough && m.enough()
	}
	if enough {
		return nil
	}
	for p := range r.programs {
		if err := p.forget(); err != nil {
			return err
		}
	}
	for _, m := range r.shared() {
		changed, err := m.grow(r.b.dev)
		if err == nil && changed && m == r.counts {
			if err = r.settle(); err != nil {
				err = errors.Join(err, m.free())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle sets the counters of workgroups to 0, what they are between dispatches. Nothing
// may run that uses them.
func (r *Runtime) settle() error {
	if err := r.counts.buf.Write(0, make([]byte, r.counts.size)); err != nil {
		return err
	}
	r.unsettled = false
	return nil
}

// usable reports a runtime that is closed or whose device is lost or hangs.
func (r *Runtime) usable(what string) error {
	if r.closed {
		return fmt.Errorf("compute: %s: %w", what, ops.ErrClosed)
	}
	if r.b.lost != nil {
		return fmt.Errorf("compute: %s: %w", what, r.b.lost)
	}
	return nil
}

// failed turns an error of the device into one of ops and remembers a device that is
// lost, so that later calls fail at once, those of other runtimes on it too.
func (r *Runtime) failed(what string, err error) error {
	err = translate(err)
	if errors.Is(err, ops.ErrDeviceLost) {
		r.b.lost = err
	}
	return fmt.Errorf("compute: %s: %w", what, err)
}

// Memory tells what was allocated.
func (r *Runtime) Memory() ops.Memory {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	var m ops.Memory
	for _, w := range r.weights {
		m.Weights += w.size
	}
	for _, k := range r.caches {
		m.KV += k.keys.size + k.values.size
	}
	for i, s := range r.states {
		if r.plan.States[i].Floats > 0 {
			m.KV += s.size
		}
	}
	for _, s := range append(r.shared(), r.tables...) {
		m.Scratch += s.size
	}
	return m
}

// Close frees everything, open programs too. It may be called twice.
func (r *Runtime) Close() error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for p := range r.programs {
		errs = append(errs, p.close())
	}
	for _, list := range [][]*memory{r.weights, r.perSequence(), r.shared()} {
		for _, m := range list {
			errs = append(errs, m.free())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("compute: close: %w", translate(err))
	}
	return nil
}
