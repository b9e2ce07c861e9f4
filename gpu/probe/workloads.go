package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// workload is what kernels are timed with: a plan, as large as a small model's matrices,
// and a batch.
type workload struct {
	name string
	plan *ops.Plan
	rows int
	want ops.Want
}

// fullSize is the divisor of workloads as they are.
const fullSize = 1

// workloads are those in which the kernels of an ability do the most of the work: products
// with a row and with many, and the choice of tokens of a large vocabulary.
func workloads(needs device.Ability, divisor int) (list []*workload) {
	switch needs {
	case device.Subgroups:
		w := product(tensor.F16, 32, 1<<16/divisor, 4)
		w.name, w.want = "choosing tokens", ops.Want{Kind: ops.WantTop, K: 64}
		list = append(list, w)
	case device.Dot4:
		for _, t := range []tensor.Type{tensor.Q4_0, tensor.Q4_K, tensor.Q5_0, tensor.Q6_K, tensor.Q8_0, tensor.IQ2_S} { // the last as codes
			list = append(list, product(t, 2048, 4096/divisor, 1), product(t, 2048, 1024/divisor, maxRows))
		}
	}
	return list
}

func product(t tensor.Type, cols, out, rows int) *workload {
	r := rand.New(rand.NewPCG(uint64(t), uint64(rows)))
	b := ops.NewBuilder("time")
	x := b.Embed(matrix(b, r, tensor.F16, cols, maxRows, 1), 1)
	p := b.Plan
	p.Logits = b.Outputs(b.MatMul("y", matrix(b, r, t, cols, out, 1), nil, x))
	p.Vocab, p.Tokens, p.Embed, p.Context = out, maxRows, cols, maxRows
	return &workload{name: fmt.Sprintf("products of %d rows with %s", rows, t), plan: p, rows: rows}
}

// rounds are how often both sides of a comparison run; the shortest counts.
const rounds = 7

// time runs a workload with the kernels in question and without, in turns.
func (t *trial) time(w *workload) (list []Timed, err error) {
	var sides [2]*side
	for i := range sides {
		sides[i], err = newSide(t, w, i == 1)
		defer func() { err = errors.Join(err, sides[i].close()) }()
		if err != nil {
			return nil, err
		}
	}
	for range rounds {
		for _, s := range sides {
			if err := s.round(w); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range t.names() {
		ms, used := sides[1].least[name]
		base, known := sides[0].least[t.bases[name]]
		if used && known {
			list = append(list, Timed{Kernel: name, MS: ms, BaseMS: base})
		}
	}
	return list, nil
}

// side is a workload on a backend.
type side struct {
	note  *noting
	meter *Meter
	b     ops.Backend
	rt    ops.Runtime
	p     ops.Program
	least map[string]float64 // milliseconds of a run by kernel
}

func newSide(t *trial, w *workload, with bool) (*side, error) {
	s := &side{note: &noting{Device: t.d}, least: map[string]float64{}}
	s.meter = NewMeter(s.note)
	s.b = t.backend(s.meter, with)
	o := ops.Options{Slots: 1, Context: w.rows, MaxRows: w.rows, Threads: 1, Numerics: ops.Fast}
	var err error
	if s.rt, err = s.b.Load(context.Background(), w.plan, o, nil); err != nil {
		return s, err
	}
	if s.p, err = s.rt.Compile(ops.Shape{Rows: w.rows, Outs: w.rows}); err != nil {
		return s, err
	}
	err = s.run(w) // drivers compile in it
	s.meter.Kernels()
	return s, err
}

func (s *side) run(w *workload) error {
	b := &ops.Batch{}
	for i := range w.rows {
		b.Tokens, b.Pos, b.Slot = append(b.Tokens, int32(i)), append(b.Pos, int32(i)), append(b.Slot, 0)
		b.Outs, b.Want = append(b.Outs, int32(i)), append(b.Want, w.want)
	}
	return s.p.Run(b, &ops.Result{})
}

// round runs the workload once. A device without a clock is measured from outside: all
// kernels of the run have its time.
func (s *side) round(w *workload) error {
	from := time.Now()
	if err := s.run(w); err != nil {
		return err
	}
	whole := time.Since(from).Seconds() * 1000
	times := map[string]float64{}
	for _, k := range s.meter.Kernels() {
		times[k.Kernel] = k.MS
	}
	if !s.meter.Caps().Timer {
		for _, name := range s.note.compiled {
			times[name] = whole
		}
	}
	for name, ms := range times {
		if was, ok := s.least[name]; !ok || ms < was {
			s.least[name] = ms
		}
	}
	return nil
}

func (s *side) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.p != nil {
		errs = append(errs, s.p.Close())
	}
	if s.rt != nil {
		errs = append(errs, s.rt.Close())
	}
	return errors.Join(append(errs, s.b.Close())...)
}
