package main

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"ganglion/gpu/gguf/synthetic"
	"ganglion/gpu/tensor"
)

// synthesise writes the model that bench --synthetic asks for, unless it is there.
func (s *settings) synthesise(name string) error {
	if name == "" {
		return nil
	}
	types := map[string]tensor.Type{"q4_0": tensor.Q4_0, "q4_k": tensor.Q4_K, "q8_0": tensor.Q8_0}
	t, ok := types[name]
	if !ok {
		return fail(exitUsage, "--synthetic q4_0, q4_k or q8_0", "--synthetic does not know the type %q", name)
	}
	if s.Model == "" {
		return fail(exitUsage, "for example --model llama-1.1b-"+name+".gguf", "--synthetic needs a --model FILE to write")
	}
	if _, err := os.Stat(s.Model); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return synthetic.Llama1B(t).Write(s.Model, 1)
}

// readRate is how many gigabytes a second the threads read from memory together, the
// ceiling of decoding: the best of five passes over more than any cache holds.
func readRate(threads int) float64 {
	const part = 64 << 20 // bytes of a thread
	data := make([]byte, threads*part)
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1 // memory of its own: untouched pages are all one page of zeros
	}
	sums := make([]uint64, threads*8)
	best := 0.0
	for range 5 {
		start := time.Now()
		var wg sync.WaitGroup
		for t := range threads {
			b := data[t*part : (t+1)*part]
			wg.Go(func() {
				var sum uint64
				for ; len(b) >= 64; b = b[64:] {
					sum ^= binary.LittleEndian.Uint64(b) ^ binary.LittleEndian.Uint64(b[32:])
				}
				sums[t*8] += sum
			})
		}
		wg.Wait()
		best = max(best, float64(len(data))/time.Since(start).Seconds()/1e9)
	}
	return best
}
