package meter

import (
	"context"
	_ "embed"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"ganglion/plugins/wasm"
)

//go:embed testdata/kernels/scalar.wasm
var scalarKernels []byte

//go:embed testdata/kernels/simd.wasm
var simdKernels []byte

var kernels = []string{"scale", "argmax", "apply_mask", "top40", "fib", "sort", "interpret"}

// instance makes an instance of a module as it stands.
func instance(t testing.TB, module []byte, config wazero.RuntimeConfig) api.Module {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	t.Cleanup(func() { r.Close(ctx) })
	m, err := r.Instantiate(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Kernels built by a real compiler pass the limits and compute the same on fuel.
func TestKernels(t *testing.T) {
	for name, module := range map[string][]byte{"scalar": scalarKernels, "simd": simdKernels} {
		if m, err := wasm.Parse(module); err != nil {
			t.Fatal(err)
		} else if err := wasm.Check(m, wasm.PluginLimits()); err != nil {
			t.Fatal(err)
		}
		plain := instance(t, module, wazero.NewRuntimeConfigCompiler())
		fast, slow := open(t, module, policy{}, false), open(t, module, policy{}, true)
		for _, k := range append([]string{"fill"}, kernels...) {
			want, err := plain.ExportedFunction(k).Call(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			a, left, err := fast.call(tank, k)
			if err != nil {
				t.Fatal(err)
			}
			b, slowLeft, err := slow.call(tank, k)
			if err != nil {
				t.Fatal(err)
			}
			if show := fmt.Sprintf("%x", mask32(want)); show != fmt.Sprintf("%x", mask32(a)) || show != fmt.Sprintf("%x", mask32(b)) || left != slowLeft {
				t.Errorf("%s %s: %x, %x, %x; fuel %d and %d", name, k, want, a, b, tank-left, tank-slowLeft)
			}
			p, _ := plain.Memory().Read(0, plain.Memory().Size())
			q, _ := fast.m.Memory().Read(0, fast.m.Memory().Size())
			if string(p) != string(q) {
				t.Errorf("%s %s: memory differs", name, k)
			}
			t.Logf("%s %s: %d fuel", name, k, tank-left)
		}
	}
}

func mask32(v []uint64) []uint64 {
	for i := range v {
		v[i] &= 0xffffffff
	}
	return v
}

// BenchmarkKernels compares kernels as delivered and metered, in one run.
func BenchmarkKernels(b *testing.B) {
	for name, module := range map[string][]byte{"scalar": scalarKernels, "simd": simdKernels} {
		for _, k := range kernels {
			plain := instance(b, module, wazero.NewRuntimeConfigCompiler())
			g := open(b, module, policy{}, false)
			plain.ExportedFunction("fill").Call(context.Background())
			g.call(tank, "fill")
			_, left, _ := g.call(tank, k)
			b.Run(name+"/"+k+"/plain", func(b *testing.B) {
				f := plain.ExportedFunction(k)
				for b.Loop() {
					f.Call(context.Background())
				}
			})
			b.Run(name+"/"+k+"/metered", func(b *testing.B) {
				f := g.m.ExportedFunction(k)
				for b.Loop() {
					give(g.m, tank)
					f.Call(context.Background())
				}
				b.ReportMetric(float64(tank-left), "fuel")
			})
		}
	}
}

// BenchmarkRewrite is the time per byte of module.
func BenchmarkRewrite(b *testing.B) {
	b.SetBytes(int64(len(simdKernels)))
	for b.Loop() {
		if _, _, err := Rewrite(simdKernels); err != nil {
			b.Fatal(err)
		}
	}
}
