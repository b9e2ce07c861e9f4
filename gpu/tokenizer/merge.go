package tokenizer

import (
	"slices"
	"sync"
)

// symbol is one piece of a word while pieces are merged; symbols form a
// doubly linked list through their indexes.
type symbol struct {
	start, end int32 // bytes of the word
	prev, next int32 // none at the ends; prev is dead once merged into the left
	id         int32 // vocabulary id, extra id, or none
}

// dead marks, in symbol.prev, a symbol that was merged into its left one.
const dead = int32(-2)

// candidate is a pair of neighbours that may merge.
type candidate struct {
	left int32 // index of the left symbol
	size int32 // bytes of both symbols together; tells outdated candidates
	id   int32 // id of the merged symbol
}

// pairer decides whether two neighbours merge, with what priority and into what.
type pairer interface {
	pair(word []byte, left, right *symbol) (priority uint32, id int32, ok bool)
}

// merger is the working memory of one run of merges.
type merger struct {
	buf   []byte // scratch for the text or a piece as the vocabulary writes it
	word  []byte // what the symbols are part of
	syms  []symbol
	queue pairHeap    // of short words
	long  bucketQueue // of long words
}

// longWord is the number of symbols from which the bucket queue is faster.
const longWord = 512

// queue holds candidates and yields them by priority (lower is sooner), equal
// ones from left to right.
type queue interface {
	push(priority uint32, c candidate)
	pop() (candidate, bool)
}

var mergers = sync.Pool{New: func() any { return new(merger) }}

// maxPooled bounds the working memory kept between calls, in symbols.
const maxPooled = 1 << 16

func (m *merger) release() {
	m.word = nil
	if cap(m.syms) <= maxPooled && cap(m.buf) <= 16*maxPooled {
		mergers.Put(m)
	}
}

// reset prepares for a word of at most n symbols.
func (m *merger) reset(n int) { m.syms = slices.Grow(m.syms[:0], n) }

// add appends a symbol for the bytes [start, end) of the word.
func (m *merger) add(start, end int, id int32) {
	i := int32(len(m.syms))
	if i > 0 {
		m.syms[i-1].next = i
	}
	m.syms = append(m.syms, symbol{start: int32(start), end: int32(end), prev: i - 1, next: none, id: id})
}

// run merges neighbours, best candidate first, until no pair may merge. What is
// left is the list that starts at symbol 0.
//
// A queue makes it near-linear: a scan for the best pair after each merge would
// be quadratic in the word, and a word can be a whole prompt.
func (m *merger) run(p pairer) {
	var q queue = &m.queue
	if len(m.syms) >= longWord {
		q = &m.long
	}
	for i := 1; i < len(m.syms); i++ {
		m.consider(p, q, int32(i-1), int32(i))
	}
	for {
		c, ok := q.pop()
		if !ok {
			return
		}
		m.apply(p, q, c)
	}
}

// apply merges the pair of c, unless it is outdated, and considers the pairs
// that the merged symbol makes with its neighbours.
func (m *merger) apply(p pairer, q queue, c candidate) {
	left := &m.syms[c.left]
	if left.prev == dead || left.next == none {
		return
	}
	right := &m.syms[left.next]
	// A symbol that has grown since makes the sum of sizes larger.
	if right.end-left.start != c.size {
		return
	}
	left.end = right.end
	left.id = c.id
	right.prev = dead
	left.next = right.next
	if right.next != none {
		m.syms[right.next].prev = c.left
	}
	if left.prev != none {
		m.consider(p, q, left.prev, c.left)
	}
	if left.next != none {
		m.consider(p, q, c.left, left.next)
	}
}

func (m *merger) consider(p pairer, q queue, l, r int32) {
	left, right := &m.syms[l], &m.syms[r]
	if priority, id, ok := p.pair(m.word, left, right); ok {
		q.push(priority, candidate{left: l, size: right.end - left.start, id: id})
	}
}
