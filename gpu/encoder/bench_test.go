package encoder_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"ganglion/gpu/cpu"
	"ganglion/gpu/cputime"
	"ganglion/gpu/encoder"
	"ganglion/gpu/encoder/encodertest"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/ops"
)

// siglip is a quarter of Gemma 3's tower twice over: a quarter of its patches and of its
// layers.
func siglip() gguftest.Model { return encodertest.SigLIP(7, 640) }

// onProcessor opens a tower on the processor, with all of its threads.
func onProcessor(t testing.TB, path string, n ops.Numerics) *encoder.Encoder {
	t.Helper()
	back, err := cpu.New(cpu.Options{})
	if errors.Is(err, ops.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { back.Close() })
	e, err := encoder.Open(context.Background(), encoder.Config{Path: path, Backend: back, Numerics: n, Threads: runtime.GOMAXPROCS(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// BenchmarkSigLIP encodes one picture on the processor in fast mode. With
// GANGLION_SIGLIP=FILE the tower is kept there, for a comparison with others.
func BenchmarkSigLIP(b *testing.B) {
	path := os.Getenv("GANGLION_SIGLIP")
	if path == "" {
		path = filepath.Join(b.TempDir(), "siglip.gguf")
	}
	if _, err := os.Stat(path); err != nil {
		if err := gguftest.Write(path, siglip()); err != nil {
			b.Fatal(err)
		}
	}
	e := onProcessor(b, path, ops.Fast)
	m := noise(448, 448)
	used := cputime.Used()
	for b.Loop() {
		if _, err := e.EncodePicture(context.Background(), m, encoder.PictureOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/picture")
	b.ReportMetric((cputime.Used()-used).Seconds()/float64(b.N), "cpu-s/picture")
}
