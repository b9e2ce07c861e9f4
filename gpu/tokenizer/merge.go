package tokenizer

import "sync"

// symbol is one piece of a word while pieces are merged; symbols form a
// doubly linked list through their indexes.
type symbol struct {
	start, end int32 // bytes of the word
	prev, next int32 // none at the ends; prev is dead once merged into the left
	id         int32 // vocabulary id, extra id, or none
}

// dead marks, in symbol.prev, a symbol that was merged into its left one.
const dead = int32(-2)

// candidate is a pair of neighbours that may merge. The key orders candidates:
// priority in the upper half (lower is sooner), index of the left symbol in the
// lower half, so that equal priorities go from left to right.
type candidate struct {
	key  uint64
	size int32 // bytes of both symbols together; tells outdated candidates
	id   int32 // id of the merged symbol
}

// pairer decides whether two neighbours merge, with what priority and into what.
type pairer interface {
	pair(word []byte, left, right *symbol) (priority uint32, id int32, ok bool)
}

// merger is the working memory of one run of merges.
type merger struct {
	word  []byte
	syms  []symbol
	queue []candidate // binary min-heap by key
}

var mergers = sync.Pool{New: func() any { return new(merger) }}

// maxPooled bounds the working memory kept between calls, in symbols.
const maxPooled = 1 << 16

func (m *merger) release() {
	if cap(m.syms) <= maxPooled && cap(m.queue) <= 2*maxPooled && cap(m.word) <= 4*maxPooled {
		mergers.Put(m)
	}
}

func (m *merger) reset() {
	m.syms = m.syms[:0]
	m.queue = m.queue[:0]
}

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
// A queue makes it O(n log n): a scan for the best pair after each merge would
// be quadratic in the word, and a word can be a whole prompt.
func (m *merger) run(p pairer) {
	for i := 1; i < len(m.syms); i++ {
		m.consider(p, int32(i-1), int32(i))
	}
	for len(m.queue) > 0 {
		c := m.pop()
		l := int32(uint32(c.key))
		left := &m.syms[l]
		if left.prev == dead || left.next == none {
			continue
		}
		right := &m.syms[left.next]
		// A symbol that has grown since makes the sum of sizes larger.
		if right.end-left.start != c.size {
			continue
		}
		left.end = right.end
		left.id = c.id
		right.prev = dead
		left.next = right.next
		if right.next != none {
			m.syms[right.next].prev = l
		}
		if left.prev != none {
			m.consider(p, left.prev, l)
		}
		if left.next != none {
			m.consider(p, l, left.next)
		}
	}
}

func (m *merger) consider(p pairer, l, r int32) {
	left, right := &m.syms[l], &m.syms[r]
	priority, id, ok := p.pair(m.word, left, right)
	if !ok {
		return
	}
	m.push(candidate{key: uint64(priority)<<32 | uint64(uint32(l)), size: right.end - left.start, id: id})
}

func (m *merger) push(c candidate) {
	q := append(m.queue, c)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up].key <= c.key {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = c
	m.queue = q
}

func (m *merger) pop() candidate {
	q := m.queue
	top := q[0]
	n := len(q) - 1
	c := q[n]
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
		if q[child].key >= c.key {
			break
		}
		q[i] = q[child]
		i = child
	}
	if n > 0 {
		q[i] = c
	}
	m.queue = q
	return top
}
