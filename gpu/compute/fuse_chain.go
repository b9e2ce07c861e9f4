package compute

import (
	"fmt"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// productChain is a product and the way of its rows to the next one, a normChain with all
// steps but perhaps the branch's norm: the last workgroup of the product goes on with it;
// gpu/kernels/product_chain.glsl.
type productChain struct {
	product  *ops.MatMul
	chain    *normChain
	residual ops.View
	vectors  region // bias and weights of the norms, one behind another
}

// productChain finds one whose product is one dispatch and whose results in between nobody
// else reads, for they are not stored.
func (r *Runtime) productChain(list []ops.Op) fusion {
	o := as[*ops.MatMul](list, 0)
	if o == nil || !r.readsWhole(o.W) || len(r.matrices[o.W].windows) != 1 {
		return nil
	}
	c, _ := r.normChain(list[1:]).(*normChain)
	if c == nil || c.add == nil || c.next == nil || c.whole == nil || !r.sameRows(o.In, o.Out) {
		return nil
	}
	f := &productChain{product: o, chain: c}
	switch {
	case c.branch != nil && c.branch.In == o.Out:
		f.residual = c.residual()
	case c.branch == nil && c.add.A == o.Out:
		f.residual = c.add.B
	case c.branch == nil && c.add.B == o.Out:
		f.residual = c.add.A
	default:
		return nil
	}
	if f.residual.Buf == o.Out.Buf || !r.fitsProduct(o.Out.Width) || !r.readOnce(o.Out) ||
		c.branch != nil && !r.readOnce(c.branch.Out) || !r.readAsWhole(c.next.Out) {
		return nil
	}
	return f
}

// fitsProduct tells whether a row can be kept in the shared memory of a product's largest
// workgroup.
func (r *Runtime) fitsProduct(width int) bool {
	const others = 4 * (8*tileRows + tileRows + 2) // joined, adders, arrived
	return 4*(width+width/32)+others <= r.b.dev.Limits().SharedBytes
}

// readers lists the operations that read a column of a buffer.
func (r *Runtime) readers(b ops.Buf) (all []ops.Op) {
	for _, op := range r.plan.Ops {
		for _, v := range op.Reads() {
			if v.Buf == b {
				all = append(all, op)
				break
			}
		}
	}
	return all
}

// readOnce tells whether a view is all of its buffer and read by one operation.
func (r *Runtime) readOnce(v ops.View) bool {
	return r.isAll(v) && len(r.readers(v.Buf)) == 1
}

// readAsWhole tells whether a view is all of its buffer and read as whole numbers alone.
func (r *Runtime) readAsWhole(v ops.View) bool {
	for _, op := range r.readers(v.Buf) {
		o, ok := op.(*ops.MatMul)
		if !ok || o.In != v || !r.readsWhole(o.W) {
			return false
		}
	}
	return r.isAll(v)
}

// isAll tells whether a view is all of a buffer that the host does not read.
func (r *Runtime) isAll(v ops.View) bool {
	return v.Buf != r.plan.Logits.Buf && v.Off == 0 && v.Width == r.plan.Buffers[v.Buf].Width
}

func (f *productChain) count() int { return 1 + f.chain.n }

// weights are the small weights in the order of the kernel's binding.
func (f *productChain) weights() (all []*ops.Weight) {
	ws := []*ops.Weight{f.product.Bias, nil, f.chain.next.W}
	if f.chain.branch != nil {
		ws[1] = f.chain.branch.W
	}
	for _, w := range ws {
		if w != nil {
			all = append(all, w)
		}
	}
	return all
}

// describeChains decides where the small weights of chains will lie: beside each other,
// for a kernel has one binding for them.
func (r *Runtime) describeChains() error {
	limits := r.b.dev.Limits()
	s := slabs{limit: min(r.b.window, limits.BindingBytes, limits.BufferBytes), name: "vectors of chains"}
	for i := range r.plan.Ops {
		f, ok := r.fused[i].(*productChain)
		if !ok {
			continue
		}
		n := 0
		for _, w := range f.weights() {
			n += elements(w)
		}
		var err error
		if f.vectors, err = s.take(4 * int64(max(n, 1))); err != nil {
			return fmt.Errorf("weights of norms: %w", err)
		}
	}
	r.weights = append(r.weights, s.all...)
	return nil
}

// uploadChains writes the small weights of chains.
func (r *Runtime) uploadChains() error {
	for _, run := range r.fused {
		f, ok := run.(*productChain)
		if !ok {
			continue
		}
		var data []byte
		for _, w := range f.weights() {
			var err error
			if data, err = appendVector(data, w); err != nil {
				return err
			}
		}
		if err := r.write(f.vectors, 0, data); err != nil {
			return err
		}
	}
	return nil
}

// appendVector appends a small weight, widened to floats.
func appendVector(data []byte, w *ops.Weight) ([]byte, error) {
	v := make([]float32, elements(w))
	if err := tensor.Dequantize(w.Type, v, w.Data); err != nil {
		return data, fmt.Errorf("weight %q: %w", w.Name, err)
	}
	return appendFloats(data, v), nil
}

func (f *productChain) lower(l *lowering) error {
	o := f.product
	x, err := l.stage(o.In, l.matrix(o.W), 1)
	if err != nil {
		return err
	}
	p := l.plainProduct(o, x)
	// A workgroup of tiles has too many rows to go on with.
	if all := l.matrix(o.W).tiles; l.byTiles(&p) || l.tilesAtOnce(&p, all) < all {
		if err := l.product(p); err != nil {
			return err
		}
		return f.chain.lower(l)
	}
	p.chain, p.whole = f, l.wholeRows(o.Out.Width, p.n)
	p.reads = append(p.reads, l.views(f.residual)...)
	p.writes = append(append(p.writes, l.views(f.chain.add.Out)...), regions(p.whole.region)...)
	if err := l.product(p); err != nil {
		return err
	}
	l.staged[stageKey{view: f.chain.next.Out, parts: 1}] = p.whole
	l.unstored[f.chain.next.Out.Buf] = true
	return nil
}

// constants are those of product_params.glsl from CHAIN on.
func (f *productChain) constants() []uint32 {
	return []uint32{1, uint32(f.product.Out.Width), uint32(normKind(f.chain.branch)), uint32(normKind(f.chain.next))}
}

// params are the parameters of product_params.glsl from residual on.
func (f *productChain) params(l *lowering, whole staged) params {
	branchEps := float32(0)
	if f.chain.branch != nil {
		branchEps = f.chain.branch.Eps
	}
	return params{}.view(l.operand(f.residual)).view(l.operand(f.chain.add.Out)).i32(0, whole.stride).
		f32(branchEps, f.chain.next.Eps, 1/float32(f.product.Out.Width))
}
