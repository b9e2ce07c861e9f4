package compute

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
)

// nothing is a shader of two bindings and a word of parameters.
func nothing(string) *device.Shader {
	return &device.Shader{Name: "nothing", ParamBytes: 4, Bindings: make([]device.Binding, 2)}
}

// lowered is a lowering of a plan with some buffers and no operations.
func lowered(b *ops.Builder, s ops.Shape) *lowering {
	r := newRuntime(New(newFake(), Options{Shaders: nothing}), b.Plan, ops.Options{Slots: 2, Context: 512, MaxRows: 8})
	r.paging = ops.NewPaging(r.plan, r.opts)
	r.layout.Offset, r.layout.RowWidth = make([]int, len(b.Plan.Buffers)), 0
	for i := range b.Plan.Buffers { // each in its own place
		r.layout.Offset[i] = r.layout.RowWidth
		r.layout.RowWidth += r.widths[i]
	}
	r.arena[0].need = int64(4 * s.Rows * r.layout.RowWidth)
	return &lowering{rt: r, plan: b.Plan, shape: s, batch: newBatchLayout(b.Plan, r.paging, s, 1)}
}

// A barrier stands before what reads or writes what was written, or writes what was
// read, and nowhere else.
func TestBarriers(t *testing.T) {
	b := ops.NewBuilder("barriers")
	x, q, kv := b.Buffer("x", 16), b.Buffer("q", 16), b.Buffer("kv", 32)
	k, v := kv.Cols(0, 16), kv.Cols(16, 16)
	type step struct {
		name    string
		reads   []ops.View
		writes  []ops.View
		barrier bool
	}
	steps := []step{
		{"embed", nil, []ops.View{x}, false},
		{"q reads x", []ops.View{x}, []ops.View{q}, true},
		{"k beside q", []ops.View{x}, []ops.View{k}, false},
		{"v in the buffer of k", []ops.View{x}, []ops.View{v}, false},
		{"rope of k", []ops.View{k}, []ops.View{k}, true},
		{"v is known since the last barrier", []ops.View{v}, []ops.View{q.Cols(0, 4)}, false},
		{"x was not read since the last barrier", nil, []ops.View{x}, false},
		{"write after read", nil, []ops.View{v.Cols(4, 2)}, true},
		{"write after write", nil, []ops.View{v.Cols(5, 2)}, true},
	}
	l := lowered(b, ops.Shape{Rows: 4, Outs: 4})
	for _, s := range steps {
		o := l.operand(x)
		err := l.dispatch(dispatch{kernel: "nothing", bind: []region{l.batchBuffer(), o.region}, params: params{}.u32(0),
			reads: l.views(s.reads...), writes: l.views(s.writes...)})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.list[len(l.list)-1].barrier; got != s.barrier {
			t.Errorf("%s: barrier %v, want %v", s.name, got, s.barrier)
		}
	}
}

// Buffers that share memory one after the other overlap as wholes.
func TestBarrierOfSharedMemory(t *testing.T) {
	b := ops.NewBuilder("shared")
	x, y := b.Buffer("x", 16), b.Buffer("y", 16)
	l := lowered(b, ops.Shape{Rows: 4, Outs: 4})
	apart := anyOverlap(l.views(x.Cols(0, 4)), l.views(y.Cols(8, 4)))
	l.rt.layout.Offset[y.Buf] = 8
	if shared := anyOverlap(l.views(x.Cols(0, 4)), l.views(y.Cols(8, 4))); apart || !shared {
		t.Errorf("overlap apart %v, sharing %v", apart, shared)
	}
}

// What does not fit its shader or the device is refused.
func TestDispatchIsChecked(t *testing.T) {
	b := ops.NewBuilder("check")
	b.Buffer("x", 16)
	l := lowered(b, ops.Shape{Rows: 4, Outs: 4})
	good := func() dispatch {
		return dispatch{kernel: "nothing", bind: []region{l.batchBuffer(), l.batchBuffer()}, params: params{}.u32(0)}
	}
	if err := l.dispatch(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*dispatch){
		"too few bindings":     func(d *dispatch) { d.bind = d.bind[:1] },
		"too many parameters":  func(d *dispatch) { d.params = d.params.f32(1) },
		"too many constants":   func(d *dispatch) { d.constants = []uint32{1} },
		"too many workgroups":  func(d *dispatch) { d.groups[1] = 65536 },
		"too large a binding":  func(d *dispatch) { d.bind[1].size = 128<<20 + 1 },
		"a kernel not present": func(d *dispatch) { l.rt.b.opts.Shaders = func(string) *device.Shader { return nil } },
	} {
		d := good()
		spoil(&d)
		if err := l.dispatch(d); err == nil {
			t.Errorf("%s: no error", name)
		}
		l.rt.b.opts.Shaders = nothing
	}
}

// Small weights share a buffer, and no buffer is larger than a binding.
func TestSlabs(t *testing.T) {
	s := slabs{name: "w", limit: 1000}
	var got [][2]int64
	for _, n := range []int64{100, 500, 300, 1000, 1} {
		r, err := s.take(n)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, [2]int64{int64(slices.Index(s.all, r.mem)), r.offset})
	}
	if want := [][2]int64{{0, 0}, {0, 256}, {1, 0}, {2, 0}, {3, 0}}; !slices.Equal(got, want) {
		t.Errorf("buffers and offsets %v, want %v", got, want)
	}
	if _, err := s.take(1001); !errors.Is(err, ops.ErrUnsupported) {
		t.Errorf("more than a binding gave %v", err)
	}
}

// What attention is thought to need of shared memory is what its kernels declare, and the
// widest keys of the golden models fit the portable 16 KiB.
func TestSharedBytesOfAttention(t *testing.T) {
	for name, exact := range map[string]bool{"attention_f16": true, "attention_f16_fast": false, "attention_q8_texels": true, "attention_q8_fast_texels": false} {
		for _, dim := range []int{64, 100, 576} {
			a := attentionPlan{op: &ops.Attention{}, cache: ops.Cache{KeyDim: dim, ValueDim: dim}, texels: strings.HasSuffix(name, "_texels")}
			if got, want := a.sharedBytes(exact), kernels.Get(name).SharedBytes(a.constants(stageAll, 1)); got != want {
				t.Errorf("%s, keys of %d: %d bytes, it declares %d", name, dim, got, want)
			}
		}
	}
	for dim, fits := range map[int]bool{576: true, 584: false} {
		a := attentionPlan{cache: ops.Cache{KeyDim: dim}}
		if got := a.sharedBytes(true); (got <= 16<<10) != fits {
			t.Errorf("keys of %d columns need %d bytes", dim, got)
		}
	}
}

// What chains are thought to need is what their kernels declare, and a dispatch whose
// constants need more than there is is refused.
func TestSharedBytesOfChains(t *testing.T) {
	dev := newFake()
	r := &Runtime{b: New(dev, Options{})}
	product, chain := kernels.Get("matmul_q8_0_fast"), kernels.Get("normchain")
	for _, width := range []int{640, 2048, 3648, 3680, 4096} {
		constants := []uint32{8 * tileRows, 1, 4, 0, 0, 0, 1, uint32(width), 2, 2}
		need := product.SharedBytes(constants)
		if got, want := r.fitsProduct(width), need <= 16<<10; got != want {
			t.Errorf("a product's chain of %d columns needs %d bytes: %v", width, need, got)
		}
		d := dispatch{shader: product, constants: constants, bind: make([]region, len(product.Bindings)), params: make(params, product.ParamBytes)}
		for i := range d.bind {
			d.bind[i].mem = &memory{}
		}
		if err := d.check(dev.limits); errors.Is(err, device.ErrLimit) != (need > 16<<10) {
			t.Errorf("%d bytes: %v", need, err)
		}
		need = chain.SharedBytes(chosen(width, 2, 1, 2, 1))
		if most := 4*(width+width/32) + chainShared; need > most {
			t.Errorf("a chain of %d columns needs %d bytes, thought to need %d", width, need, most)
		}
	}
}

// A staged form that holds the only copy is not given up while somebody reads it, and
// reading one that is gone is a fault.
func TestStagedFormsAreOwed(t *testing.T) {
	p := &ops.Plan{Ops: []ops.Op{
		&ops.Binary{A: ops.View{Buf: 1, Width: 4}, B: ops.View{Buf: 1, Width: 4}, Out: ops.View{Buf: 2, Width: 4}},
		&ops.Binary{A: ops.View{Buf: 2, Width: 4}, B: ops.View{Buf: 2, Width: 4}, Out: ops.View{Buf: 1, Width: 4}},
		&ops.Binary{A: ops.View{Buf: 1, Width: 4}, B: ops.View{Buf: 1, Width: 4}, Out: ops.View{Buf: 2, Width: 4}},
	}}
	l := &lowering{plan: p, unstored: map[ops.Buf]bool{1: true}}
	for i, want := range []bool{true, false, true} {
		if got := l.owes(i); got != want {
			t.Errorf("before operation %d: owed %v, want %v", i, got, want)
		}
	}
	if _, err := l.stage(ops.View{Buf: 1, Width: 4}, &matrix{format: &floats{}}, 1); !errors.Is(err, errLowering) {
		t.Errorf("error %v, want %v", err, errLowering)
	}
	l.unstage([]ops.View{{Buf: 1, Width: 4}})
	if l.owes(0) {
		t.Error("owed after it was written")
	}
}
