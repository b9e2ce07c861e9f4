package compute

import (
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// stack is a run of products of one input with matrices of one type (or of types that can lie as one), such as queries and
// keys, or gate and up: their matrices and biases lie one behind another, and so do their
// outputs in the activations, so that they are one product.
type stack struct {
	products []*ops.MatMul
	weight   *ops.Weight // of all rows
	bias     *ops.Weight // of all rows, nil without
}

// describeStacks finds the stacks of a plan, before weights and buffers are placed.
func (r *Runtime) describeStacks(uses map[*ops.Weight]*ops.WeightUse, limit int64) {
	r.stacks, r.host = make(map[*ops.Weight]*stack), make(map[ops.Buf]place)
	if r.b.opts.Plain {
		return
	}
	times := make(map[*ops.Weight]int) // that a weight is multiplied by or added
	for _, op := range r.plan.Ops {
		if o, ok := op.(*ops.MatMul); ok {
			times[o.W]++
			times[o.Bias]++
		}
	}
	alone := func(w *ops.Weight, u ops.WeightUse) bool { return w == nil || times[w] == 1 && *uses[w] == u }
	for i := 0; i < len(r.plan.Ops); {
		s := &stack{}
		for {
			o := as[*ops.MatMul](r.plan.Ops, i+len(s.products))
			if o == nil || !alone(o.W, ops.WeightUse{Matrix: true}) || !alone(o.Bias, ops.WeightUse{Vector: true}) || !r.joins(s, o) {
				break
			}
			s.products = append(s.products, o)
		}
		i += max(1, len(s.products))
		r.place(s, limit)
	}
}

// joins tells whether a product can stand behind those of a stack.
func (r *Runtime) joins(s *stack, o *ops.MatMul) bool {
	b := r.plan.Buffers[o.Out.Buf]
	if _, placed := r.host[o.Out.Buf]; placed || o.Out.Width != b.Width || b.Width%4 != 0 || o.Out.Buf == r.plan.Logits.Buf || overlap(o.In, o.Out) {
		return false
	}
	if len(s.products) == 0 {
		return true
	}
	first, last := s.products[0], s.products[len(s.products)-1]
	for _, p := range s.products {
		if p.Out.Buf == o.Out.Buf {
			return false
		}
	}
	return o.In == first.In && (o.W.Type == first.W.Type || inBytes(o.W.Type) && inBytes(first.W.Type)) && (o.Bias == nil) == (first.Bias == nil) &&
		last.W.Rows%tileRows == 0 && r.sameRows(o.Out, first.Out)
}

// inBytes tells whether matrices of a type can as well lie as Q8_0: blocks of 32 with a
// half for a scale. Files have some values in Q8_0 beside queries and keys in Q5_0, which
// are small; a dispatch costs more than their bits.
func inBytes(t tensor.Type) bool { return t == tensor.Q4_0 || t == tensor.Q5_0 || t == tensor.Q8_0 }

// place is where a buffer lies in another one, which stands for all of a stack.
type place struct {
	buf   ops.Buf
	base  int // first column
	width int // of all
}

// place makes a stack of the products unless it would be larger than a window.
func (r *Runtime) place(s *stack, limit int64) {
	if len(s.products) < 2 {
		return
	}
	first := s.products[0]
	s.weight = joined(first.W)
	if first.Bias != nil {
		s.bias = joined(first.Bias)
	}
	rows := 0
	for _, o := range s.products {
		rows += o.W.Rows
	}
	s.weight.Rows = rows
	for _, o := range s.products {
		if o.W.Type != first.W.Type {
			s.weight.Type = tensor.Q8_0
		}
	}
	f, err := formatOf(s.weight, false)
	if err != nil || int64((rows+tileRows-1)/tileRows)*f.TileBytes(s.weight.Cols) > limit {
		return
	}
	base := 0
	for _, o := range s.products {
		r.stacks[o.W] = s
		r.host[o.Out.Buf] = place{first.Out.Buf, base, rows}
		base += o.W.Rows
	}
}

// joined is a weight of the kind of another one without data.
func joined(w *ops.Weight) *ops.Weight {
	return &ops.Weight{Name: w.Name, Type: w.Type, Cols: w.Cols, Rows: w.Rows, Experts: 1}
}

// describeStack gives the matrices of a stack neighbouring tiles, and its biases
// neighbouring floats.
func (r *Runtime) describeStack(st *stack, matrices, vectors *slabs) error {
	m, err := newMatrix(st.weight, false, matrices)
	if err != nil {
		return err
	}
	r.matrices[st.weight] = m
	var bias region
	if st.bias != nil {
		if bias, err = vectors.take(4 * int64(st.weight.Rows)); err != nil {
			return err
		}
		r.vectors[st.bias] = bias
	}
	tile, row := 0, int64(0)
	for _, o := range st.products {
		part := &matrix{weight: o.W, format: m.format, tileBytes: m.tileBytes, tiles: (o.W.Rows + tileRows - 1) / tileRows}
		all := m.windows[0].region
		part.windows = []window{{tiles: part.tiles, region: region{mem: all.mem,
			offset: all.offset + int64(tile)*m.tileBytes, size: int64(part.tiles) * m.tileBytes}}}
		r.matrices[o.W] = part
		if o.Bias != nil {
			r.vectors[o.Bias] = region{mem: bias.mem, offset: bias.offset + 4*row, size: 4 * int64(o.W.Rows)}
		}
		tile, row = tile+part.tiles, row+int64(o.W.Rows)
	}
	return nil
}

// products is the fusion of a stack.
func (r *Runtime) products(list []ops.Op) fusion {
	o := as[*ops.MatMul](list, 0)
	if o == nil || r.stacks[o.W] == nil {
		return nil
	}
	return r.stacks[o.W]
}

func (s *stack) count() int { return len(s.products) }

func (s *stack) lower(l *lowering) error {
	first := s.products[0]
	m := l.matrix(s.weight)
	x, err := l.stage(first.In, m, 1)
	if err != nil {
		return err
	}
	out := l.operand(first.Out)
	var writes []touch
	for _, o := range s.products {
		writes = append(writes, l.views(o.Out)...)
	}
	return l.product(product{m: m, bias: s.bias, x: x, rows: l.rows(first.In), n: l.capacity(first.In),
		out: out.region, dst: out.at, stride: out.stride, writes: writes})
}
