package compute

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// cache is one layer's keys and values on the device: page n of its group begins at
// n·keyPage and n·valuePage. How a page is laid out says gpu/kernels/README.md.
type cache struct {
	keys, values       *memory
	keyPage, valuePage int64 // bytes
	group              int
}

// headBytes is the size of one key or value head of n elements in a cache: whole units
// of eight values, and for q8_0 the scales of its blocks (gpu/kernels/kv.glsl).
func headBytes(kv ops.KVType, n int) int64 {
	units := (n + 7) &^ 7
	switch kv {
	case ops.KVF32:
		return int64(4 * units)
	case ops.KVQ8:
		return int64(units + 2*((n+ops.KVBlock-1)/ops.KVBlock))
	}
	return int64(2 * units)
}

// describeCaches decides the sizes of caches, states and tables and checks them
// against what a binding can see.
func (r *Runtime) describeCaches() error {
	r.paging = ops.NewPaging(r.plan, r.opts)
	for i, c := range r.plan.Caches {
		k := &cache{group: r.paging.Of[i]}
		k.keyPage = ops.PageSize * int64(c.KVHeads) * headBytes(r.opts.KV, c.KeyDim)
		k.valuePage = ops.PageSize * int64(c.KVHeads) * headBytes(r.opts.KV, c.ValueDim)
		pages := int64(r.paging.Groups[k.group].Pages)
		k.keys = &memory{name: "keys of " + c.Name, use: device.Scratch, need: pages * k.keyPage}
		k.values = &memory{name: "values of " + c.Name, use: device.Scratch, need: pages * k.valuePage}
		r.caches = append(r.caches, k)
	}
	for _, s := range r.plan.States {
		r.states = append(r.states, &memory{name: "state " + s.Name, use: device.Scratch, need: 4 * int64(s.Floats) * int64(r.opts.Slots)})
	}
	r.turned = turnedStates(r.plan)
	for i, t := range r.plan.Tables {
		r.tables = append(r.tables, &memory{name: fmt.Sprintf("RoPE table %d", i), use: device.Weights, need: 4 * (int64(r.axesAt(t)) + int64(len(t.Axes)))})
	}
	return r.checkRanges(min(r.b.dev.Limits().BindingBytes, r.b.dev.Limits().BufferBytes))
}

// axesAt is the word at which the axes of a table stand: behind all positions.
func (r *Runtime) axesAt(t *ops.RoPETable) uint32 { return uint32(r.opts.Context * t.NRot) }

// checkRanges refuses what no binding can see all of, and says how much one can.
func (r *Runtime) checkRanges(limit int64) error {
	check := func(m *memory, one int64, what string) error {
		if m.need <= limit {
			return nil
		}
		return fmt.Errorf("%s: %d bytes for %d slots of %d tokens are beyond the %d that the device binds at once, which hold %d %s: a smaller context, fewer slots or a smaller type of cache may fit: %w",
			m.name, m.need, r.opts.Slots, r.opts.Context, limit, limit/max(one, 1), what, ops.ErrUnsupported)
	}
	for _, k := range r.caches {
		const tokens = "tokens in all slots"
		if err := check(k.keys, k.keyPage/ops.PageSize, tokens); err != nil {
			return err
		}
		if err := check(k.values, k.valuePage/ops.PageSize, tokens); err != nil {
			return err
		}
	}
	for i, t := range r.tables {
		if err := check(t, 4*int64(r.plan.Tables[i].NRot), "tokens of context"); err != nil {
			return err
		}
	}
	for i, s := range r.states {
		if err := check(s, 4*int64(r.plan.States[i].Floats), "slots"); err != nil {
			return err
		}
	}
	return nil
}

// perSequence lists what depends on slots and context.
func (r *Runtime) perSequence() []*memory {
	all := append([]*memory{}, r.tables...)
	for _, k := range r.caches {
		all = append(all, k.keys, k.values)
	}
	return append(all, r.states...)
}

// tableStep is how many positions of a RoPE table are computed at once.
const tableStep = 4096

// newCaches allocates caches, states and tables and fills the tables: position p has
// its cosines at float p·NRot and its sines at p·NRot + NRot/2, and the axes are behind all.
func (r *Runtime) newCaches() error {
	for _, m := range r.perSequence() {
		if err := r.allocate(m); err != nil {
			return err
		}
	}
	for i, t := range r.plan.Tables {
		half := t.NRot / 2
		for from := 0; from < r.opts.Context; from += tableStep {
			n := min(tableStep, r.opts.Context-from)
			cos, sin := t.Angles(from, n)
			buf := make([]byte, 0, 4*n*t.NRot)
			for p := range n {
				buf = appendFloats(buf, cos[p*half:(p+1)*half])
				buf = appendFloats(buf, sin[p*half:(p+1)*half])
			}
			if err := r.write(region{mem: r.tables[i]}, 4*int64(from)*int64(t.NRot), buf); err != nil {
				return err
			}
		}
		if err := r.writeAxes(i, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runtime) writeAxes(i int, t *ops.RoPETable) error {
	if t.Axes == nil {
		return nil
	}
	var words params
	for _, a := range t.Axes {
		words = words.u32(uint32(a))
	}
	return r.write(region{mem: r.tables[i]}, 4*int64(r.axesAt(t)), words)
}

// CopyPage copies a page of every cache of a group.
func (r *Runtime) CopyPage(group, dst, src int) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if err := r.usable("copy page"); err != nil {
		return err
	}
	if err := r.paging.CheckCopy(group, dst, src); err != nil {
		return err
	}
	if err := r.copyPage(group, dst, src); err != nil {
		return r.failed("copy page", err)
	}
	return nil
}

// copyPage copies on the device, in one submission.
func (r *Runtime) copyPage(group, dst, src int) error {
	l := &lowering{rt: r, plan: r.plan}
	for _, k := range r.caches {
		if k.group != group {
			continue
		}
		for _, part := range []struct {
			mem  *memory
			page int64
		}{{k.keys, k.keyPage}, {k.values, k.valuePage}} {
			words := int(part.page / 4)
			all := region{mem: part.mem, size: part.mem.need}
			if err := l.dispatch(dispatch{kernel: "copy", bind: []region{all, all}, groups: [3]int{(words + 255) / 256},
				params: params{}.i32(words, src*words, dst*words), bytes: 2 * part.page}); err != nil {
				return err
			}
		}
	}
	c := cuts{b: r.b, list: l.list}
	if err := c.record(); err != nil {
		return errors.Join(err, c.forget())
	}
	return errors.Join(r.b.submit(&Stats{}, nil, &c), c.forget())
}

// SaveState copies the recurrent state of a slot into into[:0]: the plan's states one
// after another. It is empty when the plan has none.
func (r *Runtime) SaveState(slot int, into []float32) ([]float32, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if err := r.checkSlot("save state", slot); err != nil {
		return nil, err
	}
	saved := into[:0]
	for i, s := range r.plan.States {
		buf := make([]byte, 4*s.Floats)
		if err := r.states[i].buf.Read(int64(slot)*int64(len(buf)), buf); err != nil {
			return nil, r.failed("save state", err)
		}
		saved = r.turned[i].takeState(saved, buf)
	}
	return saved, nil
}

// LoadState puts a saved state back; nil sets the state of position 0.
func (r *Runtime) LoadState(slot int, saved []float32) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if err := r.checkSlot("load state", slot); err != nil {
		return err
	}
	want := int(r.plan.StateBytes() / 4)
	if saved != nil && len(saved) != want {
		return fmt.Errorf("compute: load state: %d floats, want %d", len(saved), want)
	}
	if saved == nil {
		saved = make([]float32, want)
	}
	for i, s := range r.plan.States {
		if err := r.states[i].buf.Write(4*int64(slot)*int64(s.Floats), r.turned[i].stateBytes(saved[:s.Floats])); err != nil {
			return r.failed("load state", err)
		}
		saved = saved[s.Floats:]
	}
	return nil
}

func (r *Runtime) checkSlot(what string, slot int) error {
	if err := r.usable(what); err != nil {
		return err
	}
	if slot < 0 || slot >= r.opts.Slots {
		return fmt.Errorf("compute: %s: slot %d of %d", what, slot, r.opts.Slots)
	}
	return nil
}

// appendFloats appends the bytes of floats as a device has them.
func appendFloats(buf []byte, v []float32) []byte {
	for _, x := range v {
		buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
	}
	return buf
}

// putFloats writes floats to the beginning of buf.
func putFloats(buf []byte, v []float32) []byte {
	appendFloats(buf[:0], v)
	return buf
}

// takeFloats appends the floats that a device's bytes hold.
func takeFloats(v []float32, buf []byte) []float32 {
	for i := 0; i+4 <= len(buf); i += 4 {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(buf[i:])))
	}
	return v
}
