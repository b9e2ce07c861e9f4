package ops

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ganglion/gpu/tensor"
)

// TestPoolHoldsEverySlot lets all slots run anywhere at once: what their next batches
// see and write, with as much before it as a batch may take back, fits the pool.
func TestPoolHoldsEverySlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Cache{KVHeads: 1, KeyDim: 1, ValueDim: 1, Window: rapid.IntRange(0, 200).Draw(t, "window")}
		o := Options{Slots: rapid.IntRange(1, 3).Draw(t, "slots"), Context: rapid.IntRange(1, 600).Draw(t, "context"),
			MaxRows: rapid.IntRange(1, 200).Draw(t, "rows")}
		g := NewPaging(&Plan{Caches: []Cache{c}}, o)
		used := 0
		for range o.Slots {
			end := rapid.IntRange(1, o.Context).Draw(t, "end")
			from := 0
			if c.Window > 0 {
				from = max(0, end-c.Window-o.MaxRows)
			}
			used += (end-1)/PageSize - from/PageSize + 1
		}
		if used > g.Groups[0].Pages {
			t.Fatalf("%d pages in use, the pool has %d", used, g.Groups[0].Pages)
		}
	})
}

func TestPaging(t *testing.T) {
	full, local := Cache{KVHeads: 1, KeyDim: 16, ValueDim: 16}, Cache{KVHeads: 2, KeyDim: 8, ValueDim: 4, Window: 10}
	p := &Plan{Caches: []Cache{local, full, local}, States: []State{{Floats: 7}}}
	o := Options{Slots: 3, Context: 1000, MaxRows: 5, Spare: 2, Snapshots: 4}
	g := NewPaging(p, o)
	if len(g.Groups) != 2 || g.Groups[0] != (PageGroup{10, 3*2 + 2}) || g.Groups[1] != (PageGroup{0, 3*16 + 2}) ||
		g.Of[0] != 0 || g.Of[1] != 1 || g.Of[2] != 0 || g.PerSlot != 16 || g.Entries() != 96 {
		t.Errorf("paging %+v", *g)
	}
	cells := int64(PageSize * (2*8*(2*(8+4)) + 50*32))
	for kv, bytes := range map[KVType]int64{KVF16: 2 * cells, KVF32: 4 * cells, KVQ8: PageSize * (2*8*2*(8+2+4+2) + 50*2*(16+2))} {
		o.KV = kv
		if got, want := p.CacheBytes(o), bytes; got != want {
			t.Errorf("%s: caches of %d bytes, want %d", kv, got, want)
		}
		if got, want := p.DeviceKVBytes(o), bytes+3*28; got != want {
			t.Errorf("%s: %d bytes on the device, want %d", kv, got, want)
		}
		if got, want := p.KVBytes(o), bytes+3*28+4*96+7*28; got != want {
			t.Errorf("%s: %d bytes, want %d", kv, got, want)
		}
	}
}

func TestCheckPages(t *testing.T) {
	p := &Plan{Caches: []Cache{{Window: 70}, {}}}
	o := Options{Slots: 2, Context: 200, MaxRows: 64}
	g := NewPaging(p, o)
	good := func() *Batch {
		b := &Batch{Pos: []int32{150, 151}, Slot: []int32{1, 1}, Pages: make([]int32, g.Entries())}
		copy(g.Table(b.Pages, 0, 1), []int32{-1, 4, 3, -1})
		copy(g.Table(b.Pages, 1, 1), []int32{1, 2, 3, -1})
		return b
	}
	if err := good().CheckPages(g); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(b *Batch){
		"no tables":     func(b *Batch) { b.Pages = nil },
		"no page":       func(b *Batch) { g.Table(b.Pages, 1, 1)[0] = -1 },
		"window":        func(b *Batch) { g.Table(b.Pages, 0, 1)[1] = -1 },
		"out of pool":   func(b *Batch) { g.Table(b.Pages, 0, 1)[2] = int32(g.Groups[0].Pages) },
		"next position": func(b *Batch) { b.Pos = []int32{191, 192} },
	} {
		b := good()
		spoil(b)
		if err := b.CheckPages(g); err == nil || !strings.Contains(err.Error(), "ops: batch") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestKVTypeNames(t *testing.T) {
	for i, name := range KVTypes() {
		if k, err := ParseKVType(name); err != nil || k != KVType(i) || k.String() != name {
			t.Errorf("%q: %v, %v", name, k, err)
		}
	}
	if _, err := ParseKVType("q4"); err == nil || !strings.Contains(err.Error(), "q8_0") {
		t.Errorf("error %v, want one that lists the types", err)
	}
}

// TestQuantizeKV holds values to half a step of their scale, and what is not finite
// does not vanish.
func TestQuantizeKV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32Range(-1e6, 1e6), 1, KVBlock).Draw(t, "x")
		factor := rapid.SampledFrom([]float32{1, 1e-3, 1e-7, 1e-12}).Draw(t, "factor")
		for i := range x {
			x[i] *= factor
		}
		q := make([]int8, len(x))
		d := float64(tensor.F16ToF32(QuantizeKV(x, q)))
		for i, v := range x {
			// The largest magnitude may lie above 127 rounded steps: a half has eleven bits,
			// below its smallest normal number fewer.
			bound := 0.502*d + math.Abs(float64(v))/2048 + 127.0/(1<<25)
			if e := math.Abs(float64(q[i])*d - float64(v)); e > bound {
				t.Fatalf("%v became %d·%v, off by %v, bound %v", v, q[i], d, e, bound)
			}
		}
	})
	q := make([]int8, 2)
	if s := QuantizeKV([]float32{0, 0}, q); s != 0 || q[0] != 0 {
		t.Errorf("zeros: scale %04x, %v", s, q)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if d := tensor.F16ToF32(QuantizeKV([]float32{1, float32(bad)}, q)); !math.IsNaN(float64(d)) && !math.IsInf(float64(d), 0) {
			t.Errorf("%v has the scale %v", bad, d)
		}
	}
	if s := QuantizeKV([]float32{127, 0.5, 1.5, 2.5}, make([]int8, 4)); s != 0x3C00 {
		t.Errorf("scale %04x, want 1", s)
	}
	q = make([]int8, 4)
	QuantizeKV([]float32{127, 0.5, 1.5, -2.5}, q)
	if q[1] != 0 || q[2] != 2 || q[3] != -2 {
		t.Errorf("ties: %v, want them even", q)
	}
}
