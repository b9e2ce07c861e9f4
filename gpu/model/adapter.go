package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// Adapter is an opened LoRA file whose updates a plan is to carry. Its weights alias
// the file's mapping.
type Adapter struct {
	Name string // for errors
	File AdapterFile
}

// AdapterFile is what is read of an adapter; *gguf.File satisfies it.
type AdapterFile interface {
	String(key string) (string, bool)
	Float(key string) (float64, bool)
	Value(key string) (gguf.Value, bool)
	Tensors() []gguf.Tensor
	Data(t gguf.Tensor) ([]byte, error)
}

// maxRank bounds the rank of an update, and so what a backend keeps between its two
// products; adapters have 4 to 256, those extracted from tuned models up to 1,024.
const maxRank = 4096

// The last parts of an adapter's tensor names, after the name of the adapted weight.
const (
	suffixA = ".lora_a"
	suffixB = ".lora_b"
)

// IgnoredTensors lists the tensors of an adapter that are not applied: norm weights
// that were trained along, which the reference leaves out as well.
func IgnoredTensors(f AdapterFile) []string {
	var names []string
	for _, t := range f.Tensors() {
		if ignored(t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

func ignored(name string) bool { return strings.HasSuffix(name, "_norm.weight") }

// pair are the two factors of one weight's update.
type pair struct {
	a, b *ops.Weight
	used bool
}

// adaptation adds one adapter to a plan.
type adaptation struct {
	plan  *ops.Plan
	name  string
	index int // of the adapter
	alpha float64
	pairs map[string]*pair // by the name of the adapted weight
	order []string         // of the names, as in the file
}

// adapt puts the updates of all adapters behind the operations whose weights they name;
// those of one weight stand in the order of the adapters.
func adapt(p *ops.Plan, src Source, arch string, adapters []Adapter) error {
	if len(adapters) == 0 {
		return nil
	}
	all := make([]*adaptation, len(adapters))
	for i, a := range adapters {
		all[i] = &adaptation{plan: p, name: a.Name, index: i, pairs: make(map[string]*pair)}
		if err := all[i].read(a.File, arch); err != nil {
			return all[i].wrap(err)
		}
	}
	p.Adapters = len(adapters)
	list := make([]ops.Op, 0, 2*len(p.Ops))
	for i := 0; i < len(p.Ops); i++ {
		op := p.Ops[i]
		list = append(list, op)
		if scaled(p.Ops, i) {
			i++ // the update is of the scaled matrix, as the reference has it
			list = append(list, p.Ops[i])
		}
		for _, t := range all {
			update, err := t.update(op, src)
			if err != nil {
				return t.wrap(err)
			}
			if update != nil {
				list = append(list, update)
			}
		}
	}
	p.Ops = list
	for _, t := range all {
		if err := t.unused(src); err != nil {
			return t.wrap(err)
		}
	}
	return nil
}

// scaled tells whether the operation after i multiplies the product of i by the
// matrix's own scale.
func scaled(all []ops.Op, i int) bool {
	m, ok := all[i].(*ops.MatMul)
	if !ok || i+1 == len(all) {
		return false
	}
	v, ok := all[i+1].(*ops.AddVec)
	return ok && v.Mul && v.In == m.Out && v.Out == m.Out && v.W.Name == scaleOf(m.W.Name)
}

// scaleOf is the name of the scale that belongs to a weight.
func scaleOf(name string) string { return strings.TrimSuffix(name, ".weight") + ".scale" }

func (t *adaptation) wrap(err error) error { return fmt.Errorf("adapter %q: %w", t.name, err) }

// read checks the file's keys and pairs its tensors.
func (t *adaptation) read(f AdapterFile, arch string) error {
	for _, k := range []struct{ key, want string }{
		{"general.type", "adapter"}, {"general.architecture", arch}, {"adapter.type", "lora"},
	} {
		if got, ok := f.String(k.key); !ok {
			return fmt.Errorf("key %q is missing, want %q", k.key, k.want)
		} else if got != k.want {
			return fmt.Errorf("key %q is %q, want %q", k.key, got, k.want)
		}
	}
	const alpha, invocation = "adapter.lora.alpha", "adapter.alora.invocation_tokens"
	if _, ok := f.Value(invocation); ok {
		return fmt.Errorf("key %q: adapters that act after certain tokens alone are not supported", invocation)
	}
	if _, ok := f.Value(alpha); ok {
		if t.alpha, ok = f.Float(alpha); !ok || math.Abs(t.alpha) > math.MaxFloat32 || math.IsNaN(t.alpha) {
			return fmt.Errorf("key %q is no finite number", alpha)
		}
	}
	for _, x := range f.Tensors() {
		if err := t.tensor(f, x); err != nil {
			return fmt.Errorf("tensor %q: %w", x.Name, err)
		}
	}
	if len(t.pairs) == 0 {
		return errors.New("holds no pair of tensors NAME.lora_a and NAME.lora_b")
	}
	for _, name := range t.order {
		switch p := t.pairs[name]; {
		case p.a == nil:
			return fmt.Errorf("tensor %q is missing", name+suffixA)
		case p.b == nil:
			return fmt.Errorf("tensor %q is missing", name+suffixB)
		}
	}
	return nil
}

// tensor takes one tensor of the file.
func (t *adaptation) tensor(f AdapterFile, x gguf.Tensor) error {
	name, isA := strings.CutSuffix(x.Name, suffixA)
	isB := false
	if !isA {
		name, isB = strings.CutSuffix(x.Name, suffixB)
	}
	switch {
	case !isA && !isB && ignored(x.Name):
		return nil
	case !isA && !isB:
		return fmt.Errorf("the name ends in neither %s nor %s", suffixA, suffixB)
	case len(x.Dims) > 3 || slices.Min(append(slices.Clone(x.Dims), 1)) < 1:
		return fmt.Errorf("has shape %v", x.Dims)
	case !x.Type.Dequantizable():
		return fmt.Errorf("has type %v, which holds no weights", x.Type)
	}
	data, err := f.Data(x)
	if err != nil {
		return err
	}
	dims := [3]int{1, 1, 1}
	copy(dims[:], x.Dims)
	w := &ops.Weight{Name: x.Name, Type: x.Type, Cols: dims[0], Rows: dims[1], Experts: dims[2], Data: data}
	p := t.pairs[name]
	if p == nil {
		p = &pair{}
		t.pairs[name] = p
		t.order = append(t.order, name)
	}
	if isA {
		p.a = w
	} else {
		p.b = w
	}
	return nil
}

// update makes the update of an operation; nil when the adapter has none for it.
func (t *adaptation) update(op ops.Op, src Source) (ops.Op, error) {
	switch o := op.(type) {
	case *ops.MatMul:
		return t.product(o.W, ops.LowRank{In: o.In, Out: o.Out})
	case *ops.ExpertMatMul:
		if p := t.pairs[o.W.Name]; p != nil {
			if _, ok := src.Tensor(scaleOf(o.W.Name)); ok {
				return nil, fmt.Errorf("tensor %q: experts with scales of their own cannot be adapted", p.a.Name)
			}
		}
		return t.product(o.W, ops.LowRank{In: o.In, Out: o.Out, IDs: o.IDs})
	case *ops.Embed:
		if !o.ByPosition {
			return t.lookUp(o)
		}
	}
	return nil, nil
}

// product is the update of a matrix or of a stack of them.
func (t *adaptation) product(w *ops.Weight, o ops.LowRank) (ops.Op, error) {
	p := t.pairs[w.Name]
	if p == nil {
		return nil, nil
	}
	a, b := p.a, p.b
	if isTable(w.Name) && w.Experts <= 1 {
		// A table's factors are the other way round. As a head it needs them turned.
		if err := checkTable(w, a, b); err != nil {
			return nil, err
		}
		turned, err := transposed(b)
		if err != nil {
			return nil, err
		}
		a, b = turned, a
	}
	if err := checkPair(w, a, b); err != nil {
		return nil, err
	}
	o.A, o.B = a, b
	return t.finish(p, &o, 1), nil
}

// lookUp is the update of a table whose rows are looked up: A is a table as well.
func (t *adaptation) lookUp(e *ops.Embed) (ops.Op, error) {
	p := t.pairs[e.Table.Name]
	if p == nil {
		return nil, nil
	}
	if !isTable(e.Table.Name) {
		return nil, fmt.Errorf("tensor %q: only adapters of token embeddings can be looked up", p.a.Name)
	}
	if err := checkTable(e.Table, p.a, p.b); err != nil {
		return nil, err
	}
	return t.finish(p, &ops.LowRank{ByToken: true, A: p.a, B: p.b, Out: e.Out}, float64(e.Scale)), nil
}

// finish sets what all updates have and registers their weights.
func (t *adaptation) finish(p *pair, o *ops.LowRank, scale float64) ops.Op {
	p.used = true
	o.Adapter = t.index
	if t.alpha != 0 {
		scale *= t.alpha / float64(o.Rank())
	}
	o.Factor = float32(scale)
	for _, w := range []*ops.Weight{o.A, o.B} {
		if !slices.Contains(t.plan.Weights, w) {
			t.plan.Weights = append(t.plan.Weights, w)
		}
	}
	return o
}

// isTable tells whether the factors of a weight are those of a table: the reference
// knows it by the name.
func isTable(name string) bool { return strings.HasSuffix(name, "token_embd.weight") }

// checkPair holds the factors of a matrix against it: A is [rank, in], B [out, rank].
func checkPair(w, a, b *ops.Weight) error {
	experts := max(w.Experts, 1)
	switch {
	case a.Cols != w.Cols || a.Experts != experts:
		return shape(a, w.Cols, 0, experts)
	case b.Rows != w.Rows || b.Experts != experts:
		return shape(b, a.Rows, w.Rows, experts)
	}
	return checkRank(a, a.Rows, b)
}

// checkTable holds the factors of a table against it: A is [vocab, rank], B [width, rank].
func checkTable(w, a, b *ops.Weight) error {
	switch {
	case a.Rows != w.Rows || a.Experts != 1:
		return shape(a, 0, w.Rows, 1)
	case b.Rows != w.Cols || b.Experts != 1:
		return shape(b, a.Cols, w.Cols, 1)
	}
	return checkRank(a, a.Cols, b)
}

func checkRank(a *ops.Weight, rank int, b *ops.Weight) error {
	switch {
	case b.Cols != rank:
		return fmt.Errorf("tensor %q has rank %d, its other half %d", b.Name, b.Cols, rank)
	case rank < 1 || rank > maxRank:
		return fmt.Errorf("tensor %q has rank %d, which is not in [1, %d]", a.Name, rank, maxRank)
	}
	return nil
}

// shape is the error of a factor of the wrong shape; 0 stands for the rank.
func shape(w *ops.Weight, cols, rows, experts int) error {
	text := func(n int) string {
		if n == 0 {
			return "rank"
		}
		return fmt.Sprint(n)
	}
	want := text(cols) + " " + text(rows)
	if experts > 1 || w.Experts > 1 {
		want += " " + text(experts)
	}
	return fmt.Errorf("tensor %q is %v, want [%s]", w.Name, [3]int{w.Cols, w.Rows, w.Experts}, want)
}

// transposed is a matrix turned, in float32.
func transposed(w *ops.Weight) (*ops.Weight, error) {
	values := make([]float32, w.Cols*w.Rows)
	if err := tensor.Dequantize(w.Type, values, w.Data); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", w.Name, err)
	}
	data := make([]byte, 4*len(values))
	for i, v := range values {
		at := (i%w.Cols)*w.Rows + i/w.Cols
		bits := math.Float32bits(v)
		data[4*at], data[4*at+1], data[4*at+2], data[4*at+3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
	}
	return &ops.Weight{Name: w.Name + " transposed", Type: tensor.F32, Cols: w.Rows, Rows: w.Cols, Experts: 1, Data: data}, nil
}

// unused reports the first pair that no operation took.
func (t *adaptation) unused(src Source) error {
	for _, name := range t.order {
		if t.pairs[name].used {
			continue
		}
		if _, ok := src.Tensor(name); ok {
			return fmt.Errorf("tensor %q: the model does not multiply by %q in a way that can be adapted", name+suffixA, name)
		}
		return fmt.Errorf("tensor %q: the model has no tensor %q", name+suffixA, name)
	}
	return nil
}
