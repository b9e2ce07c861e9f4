package ops

// Builder appends operations to a plan and makes their output buffers. Its
// methods return the view they wrote; they do not fail, for Plan.Validate reports
// every mistake with the operation's place.
type Builder struct {
	Plan *Plan
	rows RowSet
}

// NewBuilder starts a plan.
func NewBuilder(name string) *Builder { return &Builder{Plan: &Plan{Name: name}} }

// Buffer makes an activation buffer of the current row set.
func (b *Builder) Buffer(name string, width int) View {
	return b.buffer(name, width, F32)
}

// Indices makes a buffer of I32.
func (b *Builder) Indices(name string, width int) View {
	return b.buffer(name, width, I32)
}

func (b *Builder) buffer(name string, width int, e Elem) View {
	b.Plan.Buffers = append(b.Plan.Buffers, Buffer{Name: name, Width: width, Rows: b.rows, Elem: e})
	return View{Buf: Buf(len(b.Plan.Buffers) - 1), Width: width}
}

// Add appends an operation.
func (b *Builder) Add(op Op) { b.Plan.Ops = append(b.Plan.Ops, op) }

// Weight registers a weight with the plan; the same pointer is registered once.
func (b *Builder) Weight(w *Weight) *Weight {
	for _, have := range b.Plan.Weights {
		if have == w {
			return w
		}
	}
	b.Plan.Weights = append(b.Plan.Weights, w)
	return w
}

// Cache adds a KV cache and returns its index.
func (b *Builder) Cache(c Cache) int {
	b.Plan.Caches = append(b.Plan.Caches, c)
	return len(b.Plan.Caches) - 1
}

// State adds recurrent state and returns its index.
func (b *Builder) State(s State) int {
	b.Plan.States = append(b.Plan.States, s)
	return len(b.Plan.States) - 1
}

// Table adds a RoPE table and returns its index.
func (b *Builder) Table(t *RoPETable) int {
	b.Plan.Tables = append(b.Plan.Tables, t)
	return len(b.Plan.Tables) - 1
}

// List adds a list for Gather and returns its index.
func (b *Builder) List(l List) int {
	b.Plan.Lists = append(b.Plan.Lists, l)
	return len(b.Plan.Lists) - 1
}

// PerOut makes buffers per output row from now on, or per row of the batch again.
func (b *Builder) PerOut(outs bool) {
	b.rows = PerRow
	if outs {
		b.rows = PerOut
	}
}

// Embed looks token rows up.
func (b *Builder) Embed(table *Weight, scale float32) View {
	out := b.Buffer("embed", table.Cols)
	b.Add(&Embed{Table: table, Scale: scale, Out: out})
	return out
}

// MatMul multiplies by a weight with an optional bias.
func (b *Builder) MatMul(name string, w, bias *Weight, in View) View {
	out := b.Buffer(name, w.Rows)
	b.Add(&MatMul{W: w, Bias: bias, In: in, Out: out})
	return out
}

// RMSNorm normalises groups of columns (group 0: the whole view).
func (b *Builder) RMSNorm(name string, w *Weight, eps float32, group int, in View) View {
	out := b.Buffer(name, in.Width)
	b.Add(&RMSNorm{W: w, Eps: eps, Group: group, In: in, Out: out})
	return out
}

// Sum adds two views.
func (b *Builder) Sum(name string, x, y View) View {
	out := b.Buffer(name, x.Width)
	b.Add(&Binary{Kind: AddKind, A: x, B: y, Out: out})
	return out
}

// GLU combines gate and up.
func (b *Builder) GLU(name string, act Act, gate, up View) View {
	out := b.Buffer(name, gate.Width)
	b.Add(&GLU{Act: act, Gate: gate, Up: up, Out: out})
	return out
}

// RoPE rotates in place.
func (b *Builder) RoPE(table, headDim int, neox bool, v View) View {
	b.Add(&RoPE{Table: table, HeadDim: headDim, NeoX: neox, In: v, Out: v})
	return v
}

// Outputs picks the output rows; buffers made from now on are per output.
func (b *Builder) Outputs(in View) View {
	b.rows = PerOut
	out := b.Buffer("outputs", in.Width)
	b.Add(&Rows{In: in, Out: out})
	return out
}
