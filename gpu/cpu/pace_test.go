//go:build cgo

package cpu

import (
	"testing"
	"time"
)

// paced runs batches of 10 ms that are crowded while busy says so and returns how many
// threads each had.
func paced(threads, batches int, busy func(batch, threads int) bool) []int {
	p := newPace(threads)
	var used []int
	now := time.Duration(0)
	for i := range batches {
		n := p.next(now)
		used = append(used, n)
		now += 10 * time.Millisecond
		stolen := time.Duration(0)
		if busy(i, n) {
			stolen = 4 * time.Millisecond
		}
		p.ran(now, 10*time.Millisecond, stolen)
	}
	return used
}

func share(used []int, n int) float64 {
	count := 0
	for _, u := range used {
		if u == n {
			count++
		}
	}
	return float64(count) / float64(len(used))
}

func TestPace(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		if got := share(paced(4, 100, func(int, int) bool { return false }), 4); got != 1 {
			t.Errorf("all threads in %v of the batches, want all", got)
		}
	})
	t.Run("one crowded batch is no reason", func(t *testing.T) {
		if got := share(paced(2, 100, func(i, _ int) bool { return i%2 == 0 }), 2); got != 1 {
			t.Errorf("all threads in %v of the batches, want all", got)
		}
	})
	t.Run("a busy processor", func(t *testing.T) {
		used := paced(2, 2000, func(_, n int) bool { return n == 2 })
		if got := share(used, 1); got < 0.98 {
			t.Errorf("one thread in %v of the batches, want 0.98 at least", got)
		}
		if used[2] != 1 {
			t.Errorf("threads of the third batch: got %d, want 1", used[2])
		}
	})
	t.Run("two of four busy", func(t *testing.T) {
		if got := share(paced(4, 2000, func(_, n int) bool { return n > 2 }), 2); got < 0.95 {
			t.Errorf("two threads in %v of the batches, want 0.95 at least", got)
		}
	})
	t.Run("the other process goes", func(t *testing.T) {
		used := paced(2, 1000, func(i, n int) bool { return n == 2 && i < 500 })
		if got := share(used[700:], 2); got != 1 {
			t.Errorf("all threads in %v of the batches after it went, want all", got)
		}
	})
}
