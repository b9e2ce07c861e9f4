package host

import (
	"context"
	"encoding/binary"
	"math"
	"runtime/debug"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm/wasmtest"
)

// fillView writes what a step writes: header words and candidates.
func fillView(f []byte, l *abi.Layout, step uint32) {
	for _, off := range [...]int{abi.OffHook, abi.OffFlags, abi.OffPosition, abi.OffLastToken, abi.OffNGenerated, abi.OffMax, abi.OffMean, abi.OffStd, abi.OffLogSumExp, abi.OffEntropy, abi.OffTemperature, abi.OffNFinite} {
		binary.LittleEndian.PutUint32(f[off:], step)
	}
	binary.LittleEndian.PutUint32(f[abi.OffStep:], step)
	ids, logits := f[l.CandIDs:][:4*l.CandCap], f[l.CandLogits:][:4*l.CandCap]
	for k := 0; k < len(ids); k += 4 {
		binary.LittleEndian.PutUint32(ids[k:], uint32(k))
		binary.LittleEndian.PutUint32(logits[k:], math.Float32bits(1))
	}
	binary.LittleEndian.PutUint32(f[abi.OffCandN:], uint32(l.CandCap))
}

// BenchmarkEmptyHook is a hook that does nothing: what the host adds to any.
func BenchmarkEmptyHook(b *testing.B) {
	i := open(b, load(b, newRuntime(b, Options{}), testGuest(ordinary)), opening(0))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkView is a step with 256 candidates.
func BenchmarkView(b *testing.B) {
	i := open(b, load(b, newRuntime(b, Options{}), testGuest(ordinary)), opening(40))
	b.ReportAllocs()
	step := uint32(0)
	for b.Loop() {
		step++
		fillView(i.Frame(), i.Layout(), step)
		if _, _, err := i.Call(abi.HookLogits); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProgram(b *testing.B) {
	i := open(b, load(b, newRuntime(b, Options{}), testGuest(coroutine)), opening(0))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostCall is a hundred calls of rand_u32.
func BenchmarkHostCall(b *testing.B) {
	i := open(b, load(b, newRuntime(b, Options{}), testGuest(ordinary)), opening(33))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/hostcall")
}

func BenchmarkOpen(b *testing.B) {
	for name, idle := range map[string]int{"fresh": -1, "pooled": 0} {
		b.Run(name, func(b *testing.B) {
			p := load(b, newRuntime(b, Options{Idle: idle}), testGuest(ordinary))
			o := opening(0)
			b.ReportAllocs()
			for b.Loop() {
				i, err := p.Open(context.Background(), o)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := i.Call(abi.HookPlan); err != nil {
					b.Fatal(err)
				}
				_ = i.Close()
			}
		})
	}
}

// BenchmarkInstance makes an instance and closes it, before anything runs in it.
func BenchmarkInstance(b *testing.B) {
	p := load(b, newRuntime(b, Options{}), testGuest(ordinary))
	b.ReportAllocs()
	for b.Loop() {
		g, err := p.take()
		if err != nil {
			b.Fatal(err)
		}
		g.close()
	}
}

// BenchmarkHit loads a plugin whose compiled code is in the cache.
func BenchmarkHit(b *testing.B) {
	file, cache := testGuest(ordinary), b.TempDir()
	for b.Loop() {
		r, err := New(Options{Cache: cache, Compile: inChild("yes")})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		p, err := r.Load(context.Background(), file)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds()), "us/load")
		p.Close()
		_ = r.Close()
	}
}

func BenchmarkSnapshot(b *testing.B) {
	i := open(b, load(b, newRuntime(b, Options{}), testGuest(ordinary)), opening(0))
	var state []byte
	b.ReportAllocs()
	for b.Loop() {
		state, _ = i.Snapshot(state[:0])
		if err := i.Restore(state); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(state)), "bytes")
}

func TestTokenPathAllocatesNothing(t *testing.T) {
	r := newRuntime(t, Options{})
	i := open(t, load(t, r, testGuest(ordinary)), opening(33))
	program := open(t, load(t, r, testGuest(coroutine)), opening(0))
	step := uint32(0)
	token := func() {
		step++
		fillView(i.Frame(), i.Layout(), step)
		for _, h := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookChoose, abi.HookAccept, abi.HookText} {
			if _, _, err := i.Call(h); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := program.Call(abi.HookPlan); err != nil {
			t.Fatal(err)
		}
	}
	token()
	if n := testing.AllocsPerRun(100, token); n > 0 {
		t.Errorf("%g allocations a token", n)
	}
}

// alive opens instances, lets each do its work once, and returns by how much the process
// has grown then. What the heap kept of former tests is given back first, or they would
// be made of that.
func alive(t *testing.T, p *Plugin, count int, work func(i *Instance)) (bytes int) {
	t.Helper()
	debug.FreeOSMemory()
	before := wasmtest.Resident(t)
	instances := make([]*Instance, count)
	began := time.Now()
	for n := range instances {
		instances[n] = open(t, p, opening(40))
	}
	took := time.Since(began)
	for _, i := range instances {
		work(i)
	}
	debug.FreeOSMemory()
	bytes = wasmtest.Resident(t) - before
	t.Logf("%d instances: %.1f MiB, %d KiB each, %v to open one", count, float64(bytes)/(1<<20), bytes>>10/count, took/time.Duration(count))
	return bytes
}

// A thousand live instances, each of which has done its work once.
func TestThousandInstances(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	work := func(i *Instance) {
		fillView(i.Frame(), i.Layout(), 1)
		if _, _, err := i.Call(abi.HookLogits); err != nil {
			t.Fatal(err)
		}
	}
	if bytes := alive(t, p, 1000, work); bytes > 150<<20 {
		t.Errorf("%d MiB for 1,000 instances", bytes>>20)
	}
	// The partner: what guests write to is seen.
	if bytes := alive(t, p, 500, func(i *Instance) {
		work(i)
		if _, ok := i.g.memory.Grow(5); !ok {
			t.Fatal("no memory")
		}
		all, _ := i.g.memory.Read(0, i.g.memory.Size())
		for at := len(all) - 5*memoryPage; at < len(all); at += 1 << 10 {
			all[at] = 1
		}
	}); bytes < 150<<20 {
		t.Errorf("%d MiB for 500 instances that write to 320 KiB more: the test sees nothing", bytes>>20)
	}
}
