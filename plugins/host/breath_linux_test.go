package host

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ganglion/plugins/abi"
)

// clockOf reads what a thread of this process has used of a processor
// (clock_getcpuclockid(3)).
func clockOf(t *testing.T, tid int) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^tid<<3|6), &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// TestCallsLetOthersIn: a call that burns nearly all the fuel that there is, and never calls
// the host, keeps nobody waiting who needs all threads to stop, as the collector of garbage
// does: the guest's thread works less than 5 ms until it has. Half of the stops count: on a
// busy machine it may go on after one, before the clock is read. TestOthersAreLetIn of plugins/meter has the dearest guest there is, and
// the partner.
func TestCallsLetOthersIn(t *testing.T) {
	needsCompiler(t)
	const most = 5 * time.Millisecond
	i := open(t, load(t, newRuntime(t, Options{}), turns(1, abi.MaxStepFuel/11, false)), opening(0))
	thread, done := make(chan int), make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		thread <- unix.Gettid()
		var err error
		for range 5 {
			if _, _, e := i.Call(abi.HookAccept); e != nil {
				err = e
			}
		}
		done <- err
		thread <- 0 // its clock is read until then
	}()
	tid := <-thread
	var waits []time.Duration
	var last time.Duration
	var m runtime.MemStats
	for {
		before := clockOf(t, tid)
		runtime.ReadMemStats(&m) // stops the world
		last = clockOf(t, tid)
		waits = append(waits, last-before)
		select {
		case err := <-done:
			if <-thread; err != nil {
				t.Fatal(err)
			}
			slices.Sort(waits)
			usual := waits[len(waits)/2]
			t.Logf("%d stops, after %v of the %v that 5 calls took", len(waits), usual, last)
			// A guest that lets nobody in goes on to the end of its call, which on a fast
			// processor may come within the bound.
			if limit := min(most, last/5/3); usual > limit {
				t.Errorf("a guest went on for %v while the world was to stop, want at most %v of calls of %v", usual, limit, last/5)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
