package compute

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
)

// A cache beyond what a binding can see is refused with both sizes and what would fit,
// before anything is allocated; one that just fits is not.
func TestCachesBeyondABindingAreRefused(t *testing.T) {
	p := opstest.Plan("wide", 3*256, func(b *ops.Builder, row ops.View) ops.View {
		c := b.Cache(ops.Cache{Name: "blk.0", KVHeads: 1, KeyDim: 256, ValueDim: 256})
		b.Add(&ops.KVStore{Cache: c, K: row.Cols(256, 256), V: row.Cols(512, 256)})
		out := b.Buffer("out", 256)
		b.Add(&ops.Attention{Cache: c, Heads: 1, Scale: 1, Q: row.Cols(0, 256), Out: out})
		return out
	})
	const fits = (128 << 20) / 512 // positions of 256 halves
	for _, tt := range []struct {
		slots, context int
		kv             ops.KVType
		refused        bool
	}{{2, fits / 2, ops.KVF16, false}, {4, fits / 2, ops.KVF16, true}, {4, fits / 2, ops.KVF32, true}, {3, fits / 2, ops.KVQ8, false}} {
		dev := newFake()
		dev.limits.BufferBytes = 128 << 20
		o := ops.Options{Slots: tt.slots, Context: tt.context, MaxRows: 8, Threads: 1, KV: tt.kv}
		rt, err := New(dev, Options{}).Load(context.Background(), p, o, nil)
		if (err != nil) != tt.refused {
			t.Errorf("%d slots of %d in %s: error %v", tt.slots, tt.context, tt.kv, err)
		}
		if err == nil {
			rt.Close()
			continue
		}
		for _, want := range []string{"keys of blk.0", "4 slots of 131072 tokens", "134217728", "a smaller context"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if !errors.Is(err, ops.ErrUnsupported) || dev.buffers != 0 {
			t.Errorf("error %v with %d buffers", err, dev.buffers)
		}
	}
}
