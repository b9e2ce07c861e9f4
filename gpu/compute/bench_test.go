package compute

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/cputime"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/tensor"
)

// stopwatch is a device that adds up the times of the commands whose kernel's name begins
// with a word.
type stopwatch struct {
	device.Device
	word string
	sum  time.Duration
}

type timedProgram struct {
	device.Program
	kernels []string
}

type timedFence struct {
	device.Fence
	watch   *stopwatch
	program *timedProgram
}

func (w *stopwatch) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	o.Timed = true
	p, err := w.Device.NewProgram(commands, o)
	t := &timedProgram{Program: p}
	for _, c := range commands {
		t.kernels = append(t.kernels, c.Kernel.Shader().Name)
	}
	return t, err
}

func (w *stopwatch) Submit(p device.Program) (device.Fence, error) {
	t := p.(*timedProgram)
	f, err := w.Device.Submit(t.Program)
	return &timedFence{f, w, t}, err
}

func (f *timedFence) Wait(timeout time.Duration) error {
	if err := f.Fence.Wait(timeout); err != nil {
		return err
	}
	for i, t := range f.Times() {
		if strings.HasPrefix(f.program.kernels[i], f.watch.word) {
			f.watch.sum += t
		}
	}
	return nil
}

// BenchmarkMatMul gives, for one row and for many and every layout of weights, the rate
// at which the product reads the packed matrix, what that has of the file's bytes, and
// the arithmetic. Times are those of the product's dispatch alone; of a software renderer
// there is the processor time of all of the run as well, which other work on the machine
// leaves as it is.
func BenchmarkMatMul(b *testing.B) {
	for _, d := range []driver{plain[0], drivers[1]} {
		for _, mode := range []ops.Numerics{ops.Fast, ops.Exact} {
			for _, typ := range tensor.Types() {
				if _, own := formats[typ]; !own && typ != tensor.IQ2_S {
					continue
				}
				for _, rows := range []int{1, 32} {
					b.Run(fmt.Sprintf("%s/%s/%s/%d", d.name, mode, typ, rows), func(b *testing.B) {
						benchmarkMatMul(b, d.device(b), mode, typ, rows, fewRows)
					})
				}
			}
		}
	}
}

// BenchmarkTiles gives the same of the texts for GPUs, on whatever there is: products of 64
// rows by tiles, and by rows.
func BenchmarkTiles(b *testing.B) {
	for _, d := range []driver{plain[0], drivers[1]} {
		for _, mode := range []ops.Numerics{ops.Fast, ops.Exact} {
			for _, typ := range []tensor.Type{tensor.F16, tensor.Q8_0, tensor.Q4_K} {
				for name, few := range map[string]int{"tiles": fewRows, "rows": math.MaxInt} {
					b.Run(fmt.Sprintf("%s/%s/%s/%s", d.name, mode, typ, name), func(b *testing.B) {
						benchmarkMatMul(b, devicetest.AsHardware(d.device(b)), mode, typ, 64, few)
					})
				}
			}
		}
	}
}

// BenchmarkDots gives the same of the texts for GPUs in fast mode, of the base set and of
// those with dot products of bytes: products of a row, and of 64 by tiles.
func BenchmarkDots(b *testing.B) {
	for _, typ := range []tensor.Type{tensor.Q4_0, tensor.Q4_K, tensor.Q5_0, tensor.Q6_K, tensor.Q8_0} {
		for _, rows := range []int{1, 64} {
			for name, variants := range map[string][]string{"base": nil, "dot4": allVariants()} {
				b.Run(fmt.Sprintf("%s/%d/%s", typ, rows, name), func(b *testing.B) {
					benchmarkMatMul(b, devicetest.AsHardware(plain[0].device(b)), ops.Fast, typ, rows, fewRows, variants...)
				})
			}
		}
	}
}

// BenchmarkHeads gives the time of the kernels that choose the best 256 of 262,144 logits,
// of the base set and with subgroups, on a renderer that passes for a GPU.
func BenchmarkHeads(b *testing.B) {
	for name, variants := range map[string][]string{"base": nil, "subgroup": allVariants()} {
		b.Run(name, func(b *testing.B) {
			watch := &stopwatch{Device: devicetest.AsHardware(plain[0].device(b)), word: "heads_"}
			backend := New(watch, Options{Shared: true, Deadline: 2 * time.Minute, Variants: variants})
			defer backend.Close()
			p := headsOf(b, backend, 262144, 1)
			row := make([]float32, 262144)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range row {
				row[i] = float32(r.NormFloat64())
			}
			rows, wants := [][]float32{row}, []ops.Want{{Kind: ops.WantTop, K: topMost}}
			runHeads(b, p, rows, wants) // compiles
			watch.sum = 0
			for b.Loop() {
				runHeads(b, p, rows, wants)
			}
			b.ReportMetric(watch.sum.Seconds()*1000/float64(b.N), "ms/heads")
		})
	}
}

func benchmarkMatMul(b *testing.B, dev device.Device, mode ops.Numerics, typ tensor.Type, rows, few int, variants ...string) {
	if !dev.Caps().Timer {
		b.Skip("the device tells no times")
	}
	const cols, out = 1024, 8192
	w := blocks(rand.New(rand.NewPCG(1, 2)), typ, cols, out)
	p := opstest.Plan("bench", cols, func(p *ops.Builder, row ops.View) ops.View { return p.MatMul("y", p.Weight(w), nil, row) })
	watch := &stopwatch{Device: dev, word: "matmul_"}
	backend := New(watch, Options{Shared: true, Deadline: 2 * time.Minute, Variants: variants})
	defer backend.Close()
	if !dev.Info().Software {
		backend.tiles.few = few
	}
	rt, err := backend.Load(context.Background(), p, ops.Options{Slots: 1, Context: rows, MaxRows: rows, Threads: 1, Numerics: mode}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	program, err := rt.Compile(ops.Shape{Rows: rows, Outs: rows})
	if err != nil {
		b.Fatal(err)
	}
	defer program.Close()
	batch := ops.Batch{Embeds: make([]float32, rows*cols)}
	for r := range rows {
		batch.Tokens, batch.Pos, batch.Slot = append(batch.Tokens, -1), append(batch.Pos, int32(r)), append(batch.Slot, 0)
		batch.Outs, batch.Want = append(batch.Outs, int32(r)), append(batch.Want, ops.Want{})
	}
	for i := range batch.Embeds {
		batch.Embeds[i] = float32(i%17) - 8
	}
	var result ops.Result
	run := func() {
		if err := program.Run(&batch, &result); err != nil {
			b.Fatal(err)
		}
	}
	run() // compiles
	watch.sum = 0
	before := cputime.Used()
	for b.Loop() {
		run()
	}
	cpu := (cputime.Used() - before).Seconds() / float64(b.N)
	packed := float64(formatBytes(w))
	each := watch.sum.Seconds() / float64(b.N)
	b.ReportMetric(packed/each/1e9, "GB/s")
	b.ReportMetric(packed/float64(len(w.Data)), "of-file")
	b.ReportMetric(2*cols*out*float64(rows)/each/1e9, "GFLOP/s")
	b.ReportMetric(each*1e9, "ns/product")
	if cpu > 0 {
		b.ReportMetric(packed/cpu/1e9, "GB/cpu-s")
		b.ReportMetric(2*cols*out*float64(rows)/cpu/1e9, "GFLOP/cpu-s")
	}
}

// formatBytes is the size of a packed matrix.
func formatBytes(w *ops.Weight) int64 {
	f, err := formatOf(w, false)
	if err != nil {
		return 0
	}
	return f.TileBytes(w.Cols) * int64((w.Rows+tileRows-1)/tileRows)
}
