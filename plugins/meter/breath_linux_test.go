package meter

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ganglion/plugins/wasm"
)

// chase is a guest that makes fuel last as long as any can: each of its loads waits for
// the one before, and misses all caches of the processor.
func chase(t testing.TB, p policy) *guest {
	for _, h := range hogs() {
		if h.name == "load, dependent, far" {
			g := open(t, h.module(), p, false)
			memory, _ := g.m.Memory().Read(0, 256*64<<10)
			scatter(memory)
			return g
		}
	}
	panic("there is no such hog")
}

// threadClock reads what a thread of this process has used of a processor
// (clock_getcpuclockid(3)): on a machine that others use too, clocks on walls say little.
func threadClock(t testing.TB, tid int) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^tid<<3|6), &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// stops runs a guest that burns fuel and stops the world meanwhile, as the collector does,
// again and again. It returns how long the guest went on running each time.
func stops(t *testing.T, g *guest, fuel int64) (waits []time.Duration) {
	ready, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with the goroutine
		ready <- unix.Gettid()
		g.call(fuel, "f", 1<<31)
		ready <- 0
	}()
	tid := <-ready
	var m runtime.MemStats
	for {
		before := threadClock(t, tid)
		runtime.ReadMemStats(&m) // stops the world
		waits = append(waits, threadClock(t, tid)-before)
		select {
		case <-ready:
			<-done
			return waits
		case <-time.After(time.Millisecond):
		}
	}
}

// TestOthersAreLetIn: whoever needs all threads to stop, as the collector of garbage does,
// waits for a guest no longer than 5 ms, whatever it does. The partner, without the breath
// between, makes everybody wait until it is done.
func TestOthersAreLetIn(t *testing.T) {
	if wasm.PluginLimits().MemoryPages > 256 {
		t.Fatal("guests may have more memory than the one of this test")
	}
	const fuel, most = 3_000_000, 5 * time.Millisecond
	waits := stops(t, chase(t, policy{}), fuel)
	slices.Sort(waits)
	t.Logf("%d stops, %v, at most %v", len(waits), waits[len(waits)/2], waits[len(waits)-1])
	if usual := waits[len(waits)/2]; usual > most { // it may go on after a stop, before the clock is read
		t.Errorf("a guest went on for %v", usual)
	}
	longest := time.Duration(0)
	for n := 0; n < 10 && longest < 3*most; n++ { // on a busy machine it may be over when the world is to stop
		longest = slices.Max(stops(t, chase(t, policy{breathless: true}), 2*fuel))
	}
	if longest < 3*most {
		t.Errorf("a guest that lets nobody in went on for %v: the test sees nothing", longest)
	}
}
