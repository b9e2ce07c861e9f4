package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/ops"
	"ganglion/plugins/rowstats"
)

// headsOf is a program whose logits are what the test writes: nothing but the heads.
func headsOf(t testing.TB, b *Backend, vocab, outs int) *Program {
	t.Helper()
	plan := ops.NewBuilder("heads")
	plan.Buffer("embed", 4)
	plan.Outputs(ops.View{Width: 4})
	plan.Plan.Ops = nil
	plan.Plan.Vocab, plan.Plan.Embed, plan.Plan.Logits = vocab, 4, plan.Buffer("logits", vocab)
	r := newRuntime(b, plan.Plan, ops.Options{Slots: 1, Context: 64, MaxRows: outs})
	r.paging = ops.NewPaging(r.plan, r.opts)
	r.layout.OutWidth = r.widths[plan.Plan.Logits.Buf]
	p, err := r.Compile(ops.Shape{Rows: outs, Outs: outs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.(*Program)
}

// runHeads runs the heads of rows of logits.
func runHeads(t testing.TB, p *Program, rows [][]float32, wants []ops.Want) []ops.Head {
	t.Helper()
	b := &ops.Batch{Want: wants}
	rec := p.lists[listKey{chunks: 1}]
	o := rec.lowered.operand(p.rt.plan.Logits)
	for i, row := range rows {
		b.Tokens, b.Pos, b.Slot, b.Outs = append(b.Tokens, 0), append(b.Pos, int32(i)), append(b.Slot, 0), append(b.Outs, int32(i))
		if err := p.rt.write(o.region, int64(4*(int(o.at)+i*int(o.stride))), appendFloats(nil, row)); err != nil {
			t.Fatal(err)
		}
	}
	var res ops.Result
	p.stats = Stats{}
	if err := p.runPart(rec, b, &res); err != nil {
		t.Fatal(err)
	}
	return res.Heads
}

// wantHead is what a row's head should be, by the rules of gpu/DESIGN.md.
func wantHead(row []float32, w ops.Want) ops.Head {
	h := ops.Head{}
	for id, x := range row {
		if x > row[h.Best] {
			h.Best = int32(id)
		}
	}
	h.Max = row[h.Best]
	sum := float32(0)
	for block := range slices.Chunk(row, headBlock) {
		e := make([]float32, len(block))
		for i, x := range block {
			e[i] = ops.Exp(x - h.Max)
		}
		sum += ops.Sum(e)
	}
	h.LogSumExp = h.Max + ops.Ln(sum)
	if w.Kind == ops.WantTop {
		s := headScratch{row: row}
		s.top(w.K)
		h.IDs, h.Logits = s.ids, s.logits
	}
	if w.Kind == ops.WantRow {
		h.Row = row
	}
	if w.Stats {
		h.Stats = rowstats.Of(row)
	}
	return h
}

func sameHead(got, want ops.Head) error {
	if got.Err != nil {
		return got.Err
	}
	bits := math.Float32bits
	if got.Best != want.Best || bits(got.Max) != bits(want.Max) || bits(got.LogSumExp) != bits(want.LogSumExp) {
		return fmt.Errorf("best %d, logit %v, log-sum-exp %v, want %d, %v, %v", got.Best, got.Max, got.LogSumExp, want.Best, want.Max, want.LogSumExp)
	}
	if got.Stats != want.Stats {
		return fmt.Errorf("statistics %+v, want %+v", got.Stats, want.Stats)
	}
	for i := range want.IDs {
		if got.IDs[i] != want.IDs[i] || bits(got.Logits[i]) != bits(want.Logits[i]) {
			return fmt.Errorf("place %d: token %d with %v, want %d with %v", i, got.IDs[i], got.Logits[i], want.IDs[i], want.Logits[i])
		}
	}
	if len(got.IDs) != len(want.IDs) || !slices.Equal(got.Row, want.Row) {
		return fmt.Errorf("%d best tokens, a row of %d, want %d and %d", len(got.IDs), len(got.Row), len(want.IDs), len(want.Row))
	}
	return nil
}

// headCase is rows of logits of one kind and what each wants.
type headCase struct {
	name  string
	vocab int
	rows  [][]float32
	wants []ops.Want
	heads []ops.Head
}

// headDraw is a kind of rows.
type headDraw struct {
	name string
	draw func(i int) float32
}

func headCases() []headCase {
	r := rand.New(rand.NewPCG(5, 1))
	draws := []headDraw{
		{"normal", func(int) float32 { return float32(r.NormFloat64()) }},
		{"ties", func(int) float32 { return float32(r.IntN(5) - 2) }},
		{"equal", func(int) float32 { return -3 }},
		{"zeros", func(i int) float32 { return math.Float32frombits(uint32(i%2) << 31) }},
		{"tiny", func(i int) float32 { return math.Float32frombits(uint32(r.IntN(4)) | uint32(i%2)<<31) }},
		{"rising", func(i int) float32 { return float32(i) / 1024 }},
		{"far apart", func(i int) float32 { return float32(300 + 40*r.NormFloat64()) }},
	}
	var cases []headCase
	for _, vocab := range []int{1, 5, 300, 1024, 4097, 9000, 262144} {
		kinds := draws
		if vocab > 9000 {
			kinds = []headDraw{draws[0], draws[1], draws[len(draws)-1]}
		}
		for _, d := range kinds {
			c := headCase{name: fmt.Sprintf("%d/%s", vocab, d.name), vocab: vocab}
			for _, w := range []ops.Want{{Kind: ops.WantBest}, {Kind: ops.WantTop, K: 1, Stats: true}, {Kind: ops.WantTop, K: 128},
				{Kind: ops.WantTop, K: topMost, Stats: true}, {Kind: ops.WantTop, K: topMost + 1, Stats: true}, {Kind: ops.WantRow},
				{Kind: ops.WantBest, Stats: true}, {Kind: ops.WantRow, Stats: true}} {
				w.K = min(w.K, vocab)
				row := make([]float32, vocab)
				for i := range row {
					row[i] = d.draw(i)
				}
				c.rows, c.wants, c.heads = append(c.rows, row), append(c.wants, w), append(c.heads, wantHead(row, w))
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// underFloor gives a device the limits of WebGPU.
func underFloor(d device.Device) *devicetest.Limited {
	all := devicetest.Profiles()
	return all[slices.IndexFunc(all, func(p devicetest.Profile) bool { return p.Name == "webgpu-floor" })].Wrap(d)
}

// Heads are right for every size of vocabulary, with ties and with numbers at the edges:
// on renderers that pass for GPUs with the least that GPUs have, and on one as it is, where
// the host looks at rows. On Vulkan what may run beside each other runs backwards.
func TestHeads(t *testing.T) {
	cases := headCases()
	for i, d := range append(slices.Clone(drivers), drivers[0]) {
		t.Run(d.name, func(t *testing.T) {
			dev := d.device(t)
			if d.name == "vulkan" {
				dev = devicetest.Backwards(dev)
			}
			if i < len(drivers) {
				floor := underFloor(dev)
				defer func() {
					for _, v := range floor.Violations() {
						t.Error(v)
					}
				}()
				dev = devicetest.AsHardware(floor)
			}
			b := New(dev, Options{Shared: true})
			defer b.Close()
			for _, c := range cases {
				p := headsOf(t, b, c.vocab, len(c.wants))
				for i, h := range runHeads(t, p, c.rows, c.wants) {
					if err := sameHead(h, c.heads[i]); err != nil {
						t.Errorf("%s: %+v: %v", c.name, c.wants[i], err)
					}
				}
			}
		})
	}
}

// A greedy token reads back at most 64 bytes, a sampled one 2 KiB, one that plugins look at
// with 256 candidates and statistics less than 4, a whole row a row.
func TestHeadsReadNoMore(t *testing.T) {
	const vocab = 262144
	for _, d := range drivers[:1] {
		b := New(devicetest.AsHardware(d.device(t)), Options{Shared: true})
		defer b.Close()
		p := headsOf(t, b, vocab, 1)
		rows := [][]float32{make([]float32, vocab)}
		for _, k := range []struct {
			want ops.Want
			most int64
		}{{ops.Want{Kind: ops.WantBest}, 64}, {ops.Want{Kind: ops.WantTop, K: 128}, 2048}, {ops.Want{Kind: ops.WantBest, Stats: true}, 1024},
			{ops.Want{Kind: ops.WantTop, K: topMost, Stats: true}, 4096}, {ops.Want{Kind: ops.WantRow}, 4*vocab + 64}} {
			runHeads(t, p, rows, []ops.Want{k.want})
			if got := p.Stats().ReadBack; got > k.most || got < k.most/4 {
				t.Errorf("%+v: %d bytes, at most %d", k.want, got, k.most)
			}
		}
	}
}
