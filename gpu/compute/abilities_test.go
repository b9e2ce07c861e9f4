package compute

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/tensor"
)

// allVariants names every kernel that makes use of an ability.
func allVariants() (names []string) {
	for _, s := range kernels.Variants() {
		names = append(names, s.Name)
	}
	return names
}

// usedOf are the kernels of a list of uses, once each, that begin with a word.
func usedOf(uses []devicetest.Use, word string) (names []string) {
	for _, u := range uses {
		if strings.HasPrefix(u.Kernel, word) && !slices.Contains(names, u.Kernel) {
			names = append(names, u.Kernel)
		}
	}
	slices.Sort(names)
	return names
}

// The heads that are made with subgroups are right as those of the base set are, which they
// take the place of.
func TestHeadsWithSubgroups(t *testing.T) {
	keep := devicetest.Keep(devicetest.Backwards(drivers[0].device(t)))
	b := New(devicetest.AsHardware(keep), Options{Shared: true, Variants: allVariants(), Deadline: 2 * time.Minute})
	defer b.Close()
	for _, c := range headCases() {
		p := headsOf(t, b, c.vocab, len(c.wants))
		for i, h := range runHeads(t, p, c.rows, c.wants) {
			if err := sameHead(h, c.heads[i]); err != nil {
				t.Errorf("%s: %+v: %v", c.name, c.wants[i], err)
			}
		}
	}
	want := []string{"heads_join_subgroup", "heads_max_subgroup", "heads_stats", "heads_stats_join", "heads_sum", "heads_top_join_subgroup", "heads_top_subgroup"}
	if got := usedOf(keep.Used, "heads_"); !slices.Equal(got, want) {
		t.Errorf("kernels %q, want %q", got, want)
	}
}

// productPlan multiplies embeddings by a matrix and adds a bias.
func productPlan(typ tensor.Type, cols, rows int) *ops.Plan {
	r := rand.New(rand.NewPCG(uint64(typ), 3))
	bias := &ops.Weight{Name: "bias", Type: tensor.F32, Cols: rows, Rows: 1, Experts: 1}
	for range rows {
		bias.Data = appendFloats(bias.Data, []float32{r.Float32()})
	}
	return opstest.Plan("product", cols, func(b *ops.Builder, row ops.View) ops.View {
		return b.MatMul("y", b.Weight(blocks(r, typ, cols, rows)), b.Weight(bias), row)
	})
}

// productRows runs such a plan for so many rows in fast mode and gives all logits.
func productRows(t *testing.T, b *Backend, plan *ops.Plan, n int) (all []float32) {
	t.Helper()
	rt, err := b.Load(context.Background(), plan, passOptions(n), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	p, err := rt.Compile(ops.Shape{Rows: n, Outs: n})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := rand.New(rand.NewPCG(7, uint64(n)))
	batch := &ops.Batch{Pages: make([]int32, rt.(*Runtime).paging.Entries())}
	for i := range n {
		batch.Tokens, batch.Pos, batch.Slot = append(batch.Tokens, -1), append(batch.Pos, int32(i)), append(batch.Slot, 0)
		batch.Outs, batch.Want = append(batch.Outs, int32(i)), append(batch.Want, ops.Want{Kind: ops.WantRow})
		for c := range plan.Embed {
			batch.Embeds = append(batch.Embeds, activation(r, c))
		}
	}
	var result ops.Result
	if err := p.Run(batch, &result); err != nil {
		t.Fatal(err)
	}
	for _, h := range result.Heads {
		if h.Err != nil {
			t.Fatal(h.Err)
		}
		all = append(all, h.Row...)
	}
	return all
}

// activation draws one of a row: of some blocks all are the largest number there is of a
// scale or its negative, which become 4096, of some all are 0.
func activation(r *rand.Rand, column int) float32 {
	switch column / ops.WholeBlock % 4 {
	case 1:
		return math.Nextafter32(2, 0)
	case 2:
		return -math.Nextafter32(2, 0)
	case 3:
		return 0
	}
	return 4*r.Float32() - 2
}

// Products made of dot products of bytes have the bits of those of the base set: of one row,
// of some, and by tiles, with columns and rows that are no whole number of tiles, with the
// largest activations.
func TestProductsOfDots(t *testing.T) {
	keep := devicetest.Keep(drivers[0].device(t))
	base := New(devicetest.AsHardware(keep), Options{Shared: true, Deadline: 2 * time.Minute})
	defer base.Close()
	dots := New(devicetest.AsHardware(keep), Options{Shared: true, Variants: allVariants(), Deadline: 2 * time.Minute})
	defer dots.Close()
	for _, typ := range []tensor.Type{tensor.Q4_0, tensor.Q4_K, tensor.Q5_0, tensor.Q6_K, tensor.Q8_0, tensor.IQ2_S} {
		plan := productPlan(typ, 768, 75)
		for _, n := range []int{1, 3, 20} {
			t.Run(fmt.Sprintf("%s/%d", typ, n), func(t *testing.T) {
				want := productRows(t, base, plan, n)
				keep.Used = nil
				got := productRows(t, dots, plan, n)
				kernel := "matmul_" + formatName(typ) + "_fast"
				if n > fewRows {
					kernel += tiledSuffix
				}
				if used := usedOf(keep.Used, "matmul_"); !slices.Equal(used, []string{kernel + "_dot4"}) {
					t.Errorf("kernels %q", used)
				}
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("row %d, logit %d: %v, want %v", i/75, i%75, got[i], want[i])
					}
				}
			})
		}
	}
}

// A kernel that makes use of an ability is not taken where the device does not have it, nor
// in exact mode, nor where it was not asked for.
func TestVariantsAreTakenWhereTheyMayBe(t *testing.T) {
	able := device.Caps{Precise: true, Subgroup: 8, Dot4: true}
	for _, tt := range []struct {
		name     string
		caps     device.Caps
		mode     ops.Numerics
		variants []string
		want     int
	}{
		{"able", able, ops.Fast, allVariants(), 5},
		{"no dot4", device.Caps{Subgroup: 8}, ops.Fast, allVariants(), 4},
		{"no subgroups", device.Caps{Dot4: true}, ops.Fast, allVariants(), 1},
		{"nothing", device.Caps{}, ops.Fast, allVariants(), 0},
		{"exact mode", able, ops.Exact, allVariants(), 0},
		{"not asked for", able, ops.Fast, nil, 0},
		{"one of them", able, ops.Fast, []string{"heads_max_subgroup"}, 1},
		{"none of that name", able, ops.Fast, []string{"heads_max", "heads_max_texels", "none"}, 0},
	} {
		dev := &capable{fakeDevice: newFake(), caps: tt.caps}
		b := New(dev, Options{Variants: tt.variants})
		o := passOptions(1)
		o.Numerics = tt.mode
		rt, err := b.Load(context.Background(), productPlan(tensor.Q4_K, 512, 64), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Compile(ops.Shape{Rows: 1, Outs: 1}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, name := range dev.compiled {
			if kernels.Get(name).Needs != "" {
				n++
			}
		}
		if n != tt.want || len(dev.compiled) == 0 {
			t.Errorf("%s: %d variants among %q, want %d", tt.name, n, dev.compiled, tt.want)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
}

// capable is a device that computes nothing and has abilities.
type capable struct {
	*fakeDevice
	caps     device.Caps
	compiled []string
}

func (d *capable) Caps() device.Caps { return d.caps }

func (d *capable) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	d.compiled = append(d.compiled, s.Name)
	return d.fakeDevice.NewKernel(s, constants)
}
