package compute

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
)

// realModel is the model that GANGLION_TEST_MODEL names; without one the test is skipped,
// or fails where models are required.
func realModel(t *testing.T) string {
	t.Helper()
	path := os.Getenv("GANGLION_TEST_MODEL")
	if path == "" && slices.Contains(strings.Split(os.Getenv("GANGLION_REQUIRE"), ","), "model") {
		t.Fatal("GANGLION_TEST_MODEL is not set")
	}
	if path == "" {
		t.Skip("GANGLION_TEST_MODEL is not set")
	}
	return path
}

// greedy runs a prompt and some tokens behind it, each the best one.
func greedy(t *testing.T, b ops.Backend, path string, prompt []int32, n int) (tokens []int32) {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{Backend: b, Path: path, Numerics: ops.Exact, Threads: 2, Context: 128, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	slot, _, _ := e.Acquire(prompt, 0)
	for next := prompt; len(tokens) < n; {
		var rows []engine.Row
		for i, id := range next {
			rows = append(rows, engine.Row{Slot: slot, Token: id, Want: i == len(next)-1})
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		if heads[0].Err != nil {
			t.Fatal(heads[0].Err)
		}
		next = []int32{heads[0].Best}
		tokens = append(tokens, heads[0].Best)
	}
	return tokens
}

// counted is a device that adds up what is allocated for weights.
type counted struct {
	device.Device
	weights int64
}

func (d *counted) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	if u == device.Weights {
		d.weights += size
	}
	return d.Device.NewBuffer(size, u)
}

// matrixBytes is the size of a model's matrices in its file.
func matrixBytes(t *testing.T, path string) (n int64) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range f.Tensors() {
		if len(w.Dims) > 1 {
			n += w.Bytes
		}
	}
	return n
}

// The real model gives the processor's tokens in exact mode; all its weights are on the
// device, and no more is read back than the head of a token.
func TestRealModel(t *testing.T) {
	t.Parallel()
	path := realModel(t)
	// Long enough for products of many rows, and for temp to be used again within a batch.
	prompt := []int32{2, 818, 5279, 529, 7001, 563}
	for i := range 40 {
		prompt = append(prompt, int32(1000+i*104729%200000))
	}
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := greedy(t, c, path, prompt, 4)
	for _, d := range drivers[:2] {
		t.Run(d.name, func(t *testing.T) {
			counted := &counted{Device: d.device(t)}
			b := New(counted, Options{Shared: true, Deadline: 5 * time.Minute})
			defer b.Close()
			b.tempWrap = 64 << 10
			if got := greedy(t, b, path, prompt, 4); !slices.Equal(got, want) {
				t.Errorf("tokens %v, the processor has %v", got, want)
			}
			// No weight stays behind: what the device holds is as much as the file does, and
			// nothing but the device computes, for the backend has no other code.
			if n := matrixBytes(t, path); counted.weights < n || float64(counted.weights) > 1.06*float64(n) {
				t.Errorf("%d bytes of weights on the device, the file's matrices are %d", counted.weights, n)
			}
			s := b.Stats()
			t.Logf("a token: %+v", s)
			if s.ReadBack > 64 {
				t.Errorf("a greedy token reads %d bytes back, at most 64", s.ReadBack)
			}
		})
	}
}
