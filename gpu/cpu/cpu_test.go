package cpu_test

import (
	"testing"

	"ganglion/gpu/cpu"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
)

// open returns a backend with the named kernels.
func open(t testing.TB, kernels string) *cpu.Backend {
	t.Helper()
	b, err := cpu.New(cpu.Options{Kernels: kernels})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// kernelNames are the instruction sets of this machine.
func kernelNames() []string {
	var names []string
	for _, name := range []string{"plain", "avx2", "avx512vnni", "neon", "neondot"} {
		if b, err := cpu.New(cpu.Options{Kernels: name}); err == nil {
			b.Close()
			names = append(names, name)
		}
	}
	return names
}

func TestConformance(t *testing.T) {
	for _, name := range kernelNames() {
		t.Run(name, func(t *testing.T) {
			opstest.Run(t, func(t *testing.T) ops.Backend { return open(t, name) })
		})
	}
}
