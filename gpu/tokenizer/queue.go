package tokenizer

import (
	"cmp"
	"slices"
)

// pairHeap is a binary min-heap of candidates by priority, then place.
type pairHeap []heapEntry

type heapEntry struct {
	key  uint64 // priority above, index of the left symbol below
	size int32
	id   int32
}

func (h *pairHeap) push(priority uint32, c candidate) {
	e := heapEntry{uint64(priority)<<32 | uint64(uint32(c.left)), c.size, c.id}
	q := append(*h, e)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up].key <= e.key {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = e
	*h = q
}

func (h *pairHeap) pop() (candidate, bool) {
	q := *h
	if len(q) == 0 {
		return candidate{}, false
	}
	top := q[0]
	n := len(q) - 1
	e := q[n]
	q = q[:n]
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && q[child+1].key < q[child].key {
			child++
		}
		if q[child].key >= e.key {
			break
		}
		q[i] = q[child]
		i = child
	}
	if n > 0 {
		q[i] = e
	}
	*h = q
	return candidate{left: int32(uint32(top.key)), size: top.size, id: top.id}, true
}

// bucketQueue keeps the candidates of one priority together. A long word has
// many candidates and few priorities, and the candidates of a priority come
// almost always from left to right, so most pushes append and most pops take
// the next: a heap of as many entries would leave the cache at every step.
type bucketQueue struct {
	buckets map[uint32]*bucket
	order   []uint32 // min-heap of the priorities in buckets
}

// bucket holds the candidates of one priority. Those that arrive after the first
// was taken wait in late, a heap, so that the order stays exact.
type bucket struct {
	items    []candidate
	next     int // the first of items not taken yet
	unsorted bool
	late     pairHeap
}

func (q *bucketQueue) push(priority uint32, c candidate) {
	b := q.buckets[priority]
	if b == nil {
		if q.buckets == nil {
			q.buckets = make(map[uint32]*bucket)
		}
		b = new(bucket)
		q.buckets[priority] = b
		q.order = append(q.order, priority)
		siftUp(q.order)
	}
	if b.next > 0 {
		b.late.push(0, c)
		return
	}
	if n := len(b.items); n > 0 && b.items[n-1].left > c.left {
		b.unsorted = true
	}
	b.items = append(b.items, c)
}

func (q *bucketQueue) pop() (candidate, bool) {
	for len(q.order) > 0 {
		b := q.buckets[q.order[0]]
		if b.next == 0 && b.unsorted {
			slices.SortFunc(b.items, func(x, y candidate) int { return cmp.Compare(x.left, y.left) })
		}
		if b.next < len(b.items) && (len(b.late) == 0 || b.items[b.next].left <= int32(b.late[0].key)) {
			b.next++
			return b.items[b.next-1], true
		}
		if c, ok := b.late.pop(); ok {
			return c, true
		}
		delete(q.buckets, q.order[0])
		q.order = popMin(q.order)
	}
	return candidate{}, false
}

// siftUp restores the heap after an append.
func siftUp(h []uint32) {
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up] <= h[i] {
			return
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
}

// popMin removes the first entry of a heap.
func popMin(h []uint32) []uint32 {
	n := len(h) - 1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return h
		}
		if child+1 < n && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			return h
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
