package host

import (
	"bytes"
	"fmt"
	"os"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/meter"
	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// turns is a plugin whose accept hook goes round a loop of 10 fuel a turn, outer times
// inner turns, and rests after each inner loop where it is told to.
func turns(outer, inner int, rests bool) []byte {
	i32 := []wasm.ValType{wasm.I32}
	b := &wasmtest.Builder{}
	var rest []byte
	if f := b.ImportFunc("ganglion", "rest", nil, i32); rests {
		rest = wasmtest.Code(wasm.OpCall, f, wasm.OpDrop)
	}
	base(b, 1, 0)
	const get, tee, set, sub, constant = byte(0x20), byte(0x22), byte(0x21), byte(0x6b), byte(0x41)
	loop := func(local uint, body []byte) []byte {
		return wasmtest.Code(wasm.OpLoop, byte(0x40), body, get, local, constant, 1, sub, tee, local, wasm.OpBrIf, uint(0), wasm.OpEnd)
	}
	b.Export("gg_accept", wasm.KindFunc, b.Func(i32, i32, []wasm.ValType{wasm.I32, wasm.I32}, wasmtest.Code(constant, outer, set, uint(1),
		loop(1, wasmtest.Code(constant, inner, set, uint(2), loop(2, nil), rest)), constant, 0)))
	return withManifest(b.Bytes(), fmt.Sprintf(`,"hooks":["accept"],"limits":{"fuel":{"accept":%d}}`, abi.MaxStepFuel))
}

// TestAllFuelMayBeUsed: a call may use what its hook may use, however seldom it calls the
// host, and no more.
func TestAllFuelMayBeUsed(t *testing.T) {
	for _, interpreter := range []bool{false, true} {
		r := newRuntime(t, Options{Interpreter: interpreter})
		for _, tt := range []struct {
			name         string
			outer, inner int
			rests        bool
			code         Code
		}{
			{"less than a breath", 1, meter.Breath/10 - 100, false, ""},
			{"several breaths", 3, meter.Breath/10 + 100, false, ""},
			{"several breaths with rests", 3, meter.Breath/10 + 100, true, ""},
			{"most of it", 60, abi.MaxStepFuel / 800, false, ""},
			{"most of it, with rests", 60, abi.MaxStepFuel / 800, true, ""},
			{"all of it and more", 100, abi.MaxStepFuel / 800, false, CodeFuel},
			{"all of it and more, with rests", 100, abi.MaxStepFuel / 800, true, CodeFuel},
		} {
			if interpreter && tt.outer > 10 {
				continue // seconds
			}
			i := open(t, load(t, r, turns(tt.outer, tt.inner, tt.rests)), opening(0))
			_, fuel, err := i.Call(abi.HookAccept)
			if says := fmt.Sprintf("used all of %d", abi.MaxStepFuel); codeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
			}
			if n := int64(tt.outer * tt.inner * 10); err == nil && (fuel < n || fuel > n+n/10+1000) {
				t.Errorf("%s: %d fuel, want about %d", tt.name, fuel, n)
			}
		}
	}
}

// TestFuelIsLookedAtInTheEnd: code behind the last charge that looks at the counter is paid
// for as any other.
func TestFuelIsLookedAtInTheEnd(t *testing.T) {
	const pieces = 2000 // of 2 fuel and a little
	for _, form := range []string{"plan", "run"} {
		for _, fuel := range []int{1000, 20000} { // the second is the partner
			b := &wasmtest.Builder{}
			next := b.ImportFunc("ganglion", "next", i32, i32)
			base(b, 1, 0)
			straight := wasmtest.Code(byte(0x20), uint(0), wasm.OpIf, byte(0x40), bytes.Repeat([]byte{0x41, 1, 0x1a}, pieces), wasm.OpEnd, byte(0x41), 0)
			hooks := `"plan"`
			if form == "run" {
				straight = append(wasmtest.Code(byte(0x41), 0, wasm.OpCall, next, wasm.OpDrop), straight...)
				hooks = `"run","plan"`
			}
			b.Export("gg_"+form, wasm.KindFunc, b.Func(i32, i32, nil, straight))
			p := load(t, newRuntime(t, Options{}), withManifest(b.Bytes(), fmt.Sprintf(`,"hooks":[%s],"limits":{"fuel":{"plan":%d}}`, hooks, fuel)))
			i := open(t, p, opening(0))
			_, used, err := i.Call(abi.HookPlan)
			if want := map[int]Code{1000: CodeFuel, 20000: ""}[fuel]; codeOf(err) != want || err == nil && used < 2*pieces || err != nil && used != int64(fuel) {
				t.Errorf("%s of %d fuel: %d used, %v, want %q", form, fuel, used, err, want)
			}
		}
	}
}

// BenchmarkStall is what the garbage collector waits for guests that use all of their fuel
// and never call the host: the longest stop, beside what a call takes.
func BenchmarkStall(b *testing.B) {
	i := open(b, load(b, newRuntime(b, Options{}), turns(1, abi.MaxStepFuel/11, false)), opening(0))
	sample := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(sample)
	before := append([]uint64(nil), sample[0].Value.Float64Histogram().Counts...)
	done := make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		for {
			select {
			case <-done:
				return
			default:
				churn = append(make([]byte, 0, 1<<20), 1)
				time.Sleep(100 * time.Microsecond)
			}
		}
	}()
	least := time.Duration(1 << 62)
	for b.Loop() {
		begin := time.Now()
		if _, _, err := i.Call(abi.HookAccept); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(begin))
	}
	close(done)
	<-ready
	metrics.Read(sample)
	h, longest := sample[0].Value.Float64Histogram(), 0.0
	for k, n := range h.Counts {
		if n > before[k] {
			longest = h.Buckets[k+1]
		}
	}
	b.ReportMetric(longest*1e3, "longest-stop-ms")
	b.ReportMetric(float64(least.Microseconds())/1e3, "call-ms")
}

var churn []byte

// TestContractSaysTheBreath: the number that authors read is the one that is.
func TestContractSaysTheBreath(t *testing.T) {
	text, err := os.ReadFile("../abi/ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("breaths of %d,%03d,", meter.Breath/1000, meter.Breath%1000); !strings.Contains(string(text), want) {
		t.Errorf("the contract does not speak of %q", want)
	}
}
