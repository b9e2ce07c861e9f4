package tokenizer

// trie finds the vocabulary texts that begin at a place of a text. Its edges
// lie in one open-addressing table keyed by node and byte, which takes 8 bytes
// an edge slot and builds fast; a node is a number, the root is 0.
type trie struct {
	edges  []edge
	used   int
	values []int32 // token that ends at a node, or none
}

type edge struct {
	key  uint32 // (node<<8 | byte) + 1; 0 is a free slot
	next uint32
}

// maxNodes keeps node<<8|byte within 32 bits.
const maxNodes = 1<<24 - 1

func newTrie() *trie {
	return &trie{edges: make([]edge, 64), values: []int32{none}}
}

func edgeHash(key uint32) uint32 {
	h := key * 0x9E3779B1 // 2^32 divided by the golden ratio
	return h ^ h>>15
}

// insert stores id for s; a later id replaces an earlier one. It reports
// whether there was room.
func (t *trie) insert(s string, id int32) bool {
	node := uint32(0)
	for i := range len(s) {
		next, ok := t.step(node, s[i])
		if !ok {
			if len(t.values) >= maxNodes {
				return false
			}
			next = uint32(len(t.values))
			t.values = append(t.values, none)
			t.link(node, s[i], next)
		}
		node = next
	}
	t.values[node] = id
	return true
}

func (t *trie) link(node uint32, c byte, next uint32) {
	if 2*(t.used+1) > len(t.edges) {
		old := t.edges
		t.edges = make([]edge, 4*len(old))
		for _, e := range old {
			if e.key != 0 {
				t.place(e)
			}
		}
	}
	t.place(edge{node<<8 | uint32(c) + 1, next})
	t.used++
}

func (t *trie) place(e edge) {
	mask := uint32(len(t.edges) - 1)
	i := edgeHash(e.key) & mask
	for t.edges[i].key != 0 {
		i = (i + 1) & mask
	}
	t.edges[i] = e
}

// step follows the edge for byte c.
func (t *trie) step(node uint32, c byte) (uint32, bool) {
	key := node<<8 | uint32(c) + 1
	mask := uint32(len(t.edges) - 1)
	for i := edgeHash(key) & mask; ; i = (i + 1) & mask {
		switch e := t.edges[i]; e.key {
		case key:
			return e.next, true
		case 0:
			return 0, false
		}
	}
}

// longest returns the longest stored text, of at most limit bytes, that s
// begins with.
func (t *trie) longest(s string, limit int) (id int32, size int) {
	id = none
	node := uint32(0)
	for i := 0; i < len(s) && i < limit; i++ {
		next, ok := t.step(node, s[i])
		if !ok {
			break
		}
		node = next
		if v := t.values[node]; v != none {
			id, size = v, i+1
		}
	}
	return id, size
}
