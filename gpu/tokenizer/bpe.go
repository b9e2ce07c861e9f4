package tokenizer

import "strings"

// bpe merges neighbours by the rank of their pair in the list of merges, lowest
// rank first, then leftmost, piece by piece of the pre-tokenizer.
//
// Merges are kept as pairs of ids, so that merging compares no text. A merge
// may mention texts that are no tokens (vocabularies are cut down, lists are
// not): these get extra ids, and what is left of them at the end falls back to
// bytes.
type bpe struct {
	v       *vocab
	pre     preTokenizer
	classes *classTable
	pairs   pairTable
	merged  []int32 // by rank: id of the joined text

	symbols [256]int32   // by byte: id of its character in the byte alphabet
	bytes   [256]TokenID // by byte: the token for it when all else fails
	joins   *junctions   // for raw UTF-8 only: pieces are whole lines there
}

func newBPE(v *vocab, pre preTokenizer, merges []string) *bpe {
	b := &bpe{v: v, pre: pre, classes: classes(), pairs: newPairTable(len(merges))}
	if pre.rawUTF8 {
		b.joins = new(junctions)
	}
	b.addMerges(merges)
	b.bytes = v.byteTokens()
	for i := range 256 {
		char := string(byteToRune[i])
		b.symbols[i] = v.find(char)
		if !pre.rawUTF8 {
			b.bytes[i] = v.token(char)
		}
	}
	return b
}

// addMerges fills the tables of merges. It goes over the list once for each table:
// lists have half a million entries, and so each pass has one table to keep in
// the cache.
func (b *bpe) addMerges(merges []string) {
	parts := make([]int32, 2*len(merges)) // ids of left and right
	var keys [batch]string
	for at := 0; at < len(merges); at += batch / 2 {
		some := merges[at:min(len(merges), at+batch/2)]
		for i, m := range some {
			keys[2*i], keys[2*i+1] = mergeParts(m)
		}
		b.v.findBatch(keys[:2*len(some)], parts[2*at:])
	}
	b.merged = make([]int32, len(merges))
	for rank, m := range merges {
		left, right := mergeParts(m)
		if left == "" {
			continue
		}
		for k, s := range []string{left, right} {
			if id := &parts[2*rank+k]; *id == none {
				*id = b.v.intern(s)
			}
		}
		b.merged[rank] = b.join(left, right, rank)
		if b.joins != nil {
			b.joins.allow(lastCode(left), firstCode(right))
		}
	}
	for rank := range merges {
		if left, right := parts[2*rank], parts[2*rank+1]; left != none {
			b.pairs.put(left, right, int32(rank))
		}
	}
}

// join returns the id of left+right. Lists of merges mostly have the order of the
// tokens that they lead to, so the result of the merge before, or the token
// behind it, is tried first: that saves a search.
func (b *bpe) join(left, right string, rank int) int32 {
	if rank > 0 && !b.v.repeats {
		for id := b.merged[rank-1]; id <= b.merged[rank-1]+1; id++ {
			if !b.v.isToken(id) {
				break
			}
			if t := b.v.texts[id]; len(t) == len(left)+len(right) && t[:len(left)] == left && t[len(left):] == right {
				return id
			}
		}
	}
	var buf [64]byte
	joined := append(append(buf[:0], left...), right...)
	if id := b.v.findBytes(joined); id != none {
		return id
	}
	return b.v.intern(string(joined))
}

// mergeParts cuts an entry of the list at its space; the first character may
// itself be a space. An entry without two parts, which can never apply, gives
// two empty ones.
func mergeParts(m string) (left, right string) {
	if len(m) < 3 {
		return "", ""
	}
	cut := strings.IndexByte(m[1:], ' ') + 1
	if cut == 0 || cut+1 == len(m) {
		return "", ""
	}
	return m[:cut], m[cut+1:]
}

func firstCode(s string) byte {
	code, _ := charCode(s)
	return code
}

func lastCode(s string) byte {
	i := len(s) - 1
	for i > 0 && s[i]&0xC0 == 0x80 {
		i--
	}
	return firstCode(s[i:])
}

// encode implements encoder.
func (b *bpe) encode(dst []TokenID, text string, _ bool) []TokenID {
	m := mergers.Get().(*merger)
	defer m.release()
	if b.pre.rawUTF8 {
		text = strings.ReplaceAll(text, " ", spaceMark)
	}
	split(b.pre.stages, b.classes, text, func(piece string) {
		if b.pre.rawUTF8 {
			dst = b.encodeLine(dst, m, piece)
			return
		}
		for len(piece) > maxSegment {
			dst = b.encodePiece(dst, m, piece[:maxSegment])
			piece = piece[maxSegment:]
		}
		dst = b.encodePiece(dst, m, piece)
	})
	return dst
}

// encodePiece appends the tokens of one piece by byte-level BPE.
func (b *bpe) encodePiece(dst []TokenID, m *merger, piece string) []TokenID {
	if b.pre.ignoreMerges && len(piece) <= b.v.maxLen {
		m.buf = appendAlphabet(m.buf[:0], piece)
		if id := b.v.findBytes(m.buf); b.v.isToken(id) {
			return append(dst, id)
		}
	}
	m.reset(len(piece))
	for i := range len(piece) {
		m.add(i, i+1, b.symbols[piece[i]])
	}
	return b.finish(dst, m, piece)
}

// encodeLine appends the tokens of a line or a run of line breaks by BPE on
// characters.
func (b *bpe) encodeLine(dst []TokenID, m *merger, line string) []TokenID {
	if line[0] == '\n' && len(line) <= b.v.maxLen {
		// Merges do not lead to all tokens of line breaks.
		if id := b.v.token(line); id != none {
			return append(dst, id)
		}
	}
	for len(line) > 0 {
		n := firstSegment(b.joins, line)
		part := line[:n]
		line = line[n:]
		m.reset(n)
		for i := 0; i < n; {
			size := runeLen(part[i:])
			m.add(i, i+size, b.v.find(part[i:i+size]))
			i += size
		}
		dst = b.finish(dst, m, part)
	}
	return dst
}

// finish merges the symbols of m and appends their tokens.
func (b *bpe) finish(dst []TokenID, m *merger, piece string) []TokenID {
	m.run(b)
	for i := int32(0); i != none; i = m.syms[i].next {
		y := &m.syms[i]
		if b.v.isToken(y.id) {
			dst = append(dst, y.id)
			continue
		}
		for _, c := range []byte(piece[y.start:y.end]) {
			if id := b.bytes[c]; id != none {
				dst = append(dst, id)
			}
		}
	}
	return dst
}

// pair implements pairer.
func (b *bpe) pair(_ []byte, left, right *symbol) (uint32, int32, bool) {
	rank := b.pairs.get(left.id, right.id)
	if rank < 0 {
		return 0, 0, false
	}
	return uint32(rank), b.merged[rank], true
}

// pairTable maps pairs of ids to ranks by open addressing, at most half full.
type pairTable struct {
	entries []pairEntry
	mask    uint32
}

type pairEntry struct {
	left, right int32
	rank        int32 // plus one; 0 is a free entry
}

func newPairTable(n int) pairTable {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return pairTable{entries: make([]pairEntry, size), mask: uint32(size - 1)}
}

func pairHash(left, right int32) uint32 {
	h := (uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	return uint32(h >> 32)
}

// put maps the pair to rank unless it has a rank already: the first counts.
func (t *pairTable) put(left, right, rank int32) {
	i := pairHash(left, right) & t.mask
	for ; t.entries[i].rank != 0; i = (i + 1) & t.mask {
		if e := t.entries[i]; e.left == left && e.right == right {
			return
		}
	}
	t.entries[i] = pairEntry{left, right, rank + 1}
}

// get returns the rank of the pair, or −1.
func (t *pairTable) get(left, right int32) int32 {
	for i := pairHash(left, right) & t.mask; ; i = (i + 1) & t.mask {
		e := &t.entries[i]
		if e.rank == 0 || e.left == left && e.right == right {
			return e.rank - 1
		}
	}
}
