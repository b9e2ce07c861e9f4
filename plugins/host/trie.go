package host

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// maxTrieNodes is what 24 bits of a node's second word can count.
const maxTrieNodes = 1<<24 - 1

// vocabTrie is the prefix trie of a vocabulary as ABI.md lays it out: u32 n, then n nodes
// of two words in preorder. A vocabulary that is too large for it gives no nodes.
func vocabTrie(v Vocabulary) []byte {
	type token struct {
		bytes []byte
		id    int32
	}
	tokens := make([]token, 0, v.Size())
	for id := range int32(v.Size()) {
		if b := v.Bytes(id); len(b) > 0 {
			tokens = append(tokens, token{b, id})
		}
	}
	slices.SortFunc(tokens, func(a, b token) int {
		return cmp.Or(bytes.Compare(a.bytes, b.bytes), cmp.Compare(a.id, b.id))
	})
	t := trie{}
	var last []byte
	for _, k := range tokens {
		t.add(last, k.bytes, k.id)
		last = k.bytes
	}
	t.leave(0)
	if len(t.words)/2 > maxTrieNodes {
		return make([]byte, 4)
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+4*len(t.words)), uint32(len(t.words)/2))
	for _, w := range t.words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// trie is being built from tokens in the order of their bytes.
type trie struct {
	words []uint32
	path  []int // nodes from the root to the last token
}

// add appends what a token has beyond the path to the one before it.
func (t *trie) add(last, token []byte, id int32) {
	common := 0
	for common < min(len(last), len(token)) && last[common] == token[common] {
		common++
	}
	if common == len(token) { // the same bytes again: one more leaf beside it
		common--
	}
	t.leave(common)
	for _, b := range token[common:] {
		t.path = append(t.path, len(t.words)/2)
		t.words = append(t.words, noTokenInPre, uint32(b))
	}
	t.words[len(t.words)-2] = uint32(id)
}

// leave ends the nodes below a depth: what comes next is behind their subtrees.
func (t *trie) leave(depth int) {
	next := uint32(len(t.words) / 2)
	for len(t.path) > depth {
		at := t.path[len(t.path)-1]
		t.words[2*at+1] |= next << 8
		t.path = t.path[:len(t.path)-1]
	}
}
