package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/cpu"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
)

var bothModes = []ops.Numerics{ops.Exact, ops.Fast}

// The backends of the processor answer every question in both modes.
func TestProcessorsAnswerAll(t *testing.T) {
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []ops.Backend{ref.New(), c} {
		n := 0
		put(b, bothModes, coarseBound, func(a Answer) { // bytes in fast mode
			n++
			if a.Fault != "" || a.Missing {
				t.Errorf("%s: %+v", b.Name(), a)
			}
		})
		if want := 2 * len(questions()); n != want {
			t.Errorf("%s: %d answers, want %d", b.Name(), n, want)
		}
	}
}

// Every operation of gpu/ops is asked for; TestWrongKernelsAreFound shows that each kernel
// alone is found when its result is wrong.
func TestEveryOperationIsAskedFor(t *testing.T) {
	asked := map[string][]string{}
	for _, q := range questions() {
		if err := q.plan.Validate(); err != nil {
			t.Errorf("%s: %v", q.name, err)
		}
		for _, op := range q.plan.Ops {
			name := op.Name()
			switch o := op.(type) {
			case *ops.Attention:
				if o.Span > 0 {
					name += "/spans"
				}
			case *ops.RoPE:
				if q.plan.Tables[o.Table].Axes != nil {
					name += "/axes"
				}
			}
			if names := asked[name]; !slices.Contains(names, q.name) {
				asked[name] = append(names, q.name)
			}
		}
	}
	for _, name := range strings.Fields("embed deepstack rows matmul rmsnorm layernorm l2norm binary addvec scale unary glu softcap posscale rope rope/axes kvstore attention attention/spans route expertmatmul expertsum shortconv mamba1 mamba2 gateddelta lowrank gather") {
		if asked[name] == nil {
			t.Errorf("no question makes use of %s", name)
		}
	}
}

// A head that is wrong in one tile of one row, or not finite, is found in both modes; a
// last bit in exact mode alone.
func TestWrongAnswersAreFound(t *testing.T) {
	for _, tt := range []struct {
		name        string
		spoil       func(row []float32)
		exact, fast bool
	}{
		{"nothing", func([]float32) {}, false, false},
		{"tile of zeros", func(row []float32) { clear(row[:min(16, len(row))]) }, true, true},
		{"stale tile", func(row []float32) { copy(row[min(16, len(row)/2):], row[:min(16, len(row)/2)]) }, true, true},
		{"last bit", lastBit, true, false},
		{"not a number", func(row []float32) { row[0] = float32(math.NaN()) }, true, true},
	} {
		wrong := map[string]int{}
		Ask(spoiled(ref.New(), tt.spoil), bothModes, func(a Answer) {
			if a.Fault != "" {
				wrong[a.Mode]++
			}
		})
		want := map[bool]int{true: len(questions())}
		if wrong["exact"] != want[tt.exact] || wrong["fast"] != want[tt.fast] {
			t.Errorf("%s: %v of %d questions are answered wrongly, want exact %v, fast %v", tt.name, wrong, len(questions()), tt.exact, tt.fast)
		}
	}
}

// lastBit is a difference that fast mode allows: not of the best token, whose logit a head
// tells as well.
func lastBit(row []float32) {
	i := 3
	if best, _ := summary(row); best == 3 {
		i = 4
	}
	row[i] = math.Float32frombits(math.Float32bits(row[i]) ^ 1)
}

// spoiled is a backend with the first row of logits of each run changed.
func spoiled(b ops.Backend, spoil func(row []float32)) ops.Backend {
	return opstest.Spoiled{Backend: b, Spoil: func(heads []ops.Head) { spoil(heads[0].Row) }}
}

// A backend without a kernel says so, and what it lacks is not wrong.
func TestMissingKernelsAreNotWrong(t *testing.T) {
	Ask(failing{ref.New(), ops.ErrUnsupported}, bothModes, func(a Answer) {
		if !a.Missing || !strings.Contains(a.Fault, "unsupported") {
			t.Errorf("%+v, want missing", a)
		}
	})
	n := 0
	Ask(failing{ref.New(), ops.ErrDeviceLost}, bothModes, func(a Answer) {
		n++
		if !a.Lost || a.Fault == "" {
			t.Errorf("%+v, want lost", a)
		}
	})
	if n != 1 {
		t.Errorf("%d questions were put to a device that was lost at the first", n)
	}
}

type failing struct {
	ops.Backend
	err error
}

func (f failing) Load(context.Context, *ops.Plan, ops.Options, func(done, total int64)) (ops.Runtime, error) {
	return nil, fmt.Errorf("no: %w", f.err)
}
