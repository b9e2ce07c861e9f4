package host

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// budget is the memory of all guests of a runtime.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take asks for bytes; false where there are not so many left.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// allocator gives guests of one plugin their memory and bounds it: growth beyond limit
// gives the guest −1.
type allocator struct {
	limit uint64 // bytes
	all   *budget
}

var _ experimental.MemoryAllocator = allocator{}

// Allocate implements experimental.MemoryAllocator. A memory belongs to one instance,
// which frees it when it is closed.
func (a allocator) Allocate(_, most uint64) experimental.LinearMemory {
	return &linear{limit: min(most, a.limit), all: a.all}
}

// linear is the memory of one instance. Where the system gives address space for
// nothing, it does not move when it grows, and pages that the guest never touches cost
// nothing.
type linear struct {
	limit    uint64
	all      *budget
	b        []byte
	reserved []byte
	refused  bool // a growth was refused
}

// Reallocate implements experimental.LinearMemory.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.limit || !l.all.take(int64(size)-int64(len(l.b))) {
		l.refused = true
		return nil
	}
	if l.reserved == nil {
		l.reserved = reserve(int(l.limit))
	}
	if l.reserved != nil {
		l.b = l.reserved[:size:size]
		return l.b
	}
	b := make([]byte, size)
	copy(b, l.b)
	l.b = b
	return b
}

// Free implements experimental.LinearMemory.
func (l *linear) Free() {
	l.all.take(-int64(len(l.b)))
	release(l.reserved)
	l.reserved, l.b = nil, nil
}
