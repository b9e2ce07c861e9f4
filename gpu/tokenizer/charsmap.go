package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// charsmap is SentencePiece's precompiled map from texts to their normal form
// (normalizer.cc): a double-array trie in the layout of darts-clone, whose
// values are offsets into a block of zero-terminated strings.
type charsmap struct {
	units  []uint32
	values string
}

// newCharsmap reads tokenizer.ggml.precompiled_charsmap, given as bytes: the
// size of the trie in bytes, the trie, the strings; numbers are little-endian.
func newCharsmap(raw []int64) (*charsmap, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	b := make([]byte, len(raw))
	for i, v := range raw {
		b[i] = byte(v) // arrays of int8 hold bytes too
	}
	const key = "tokenizer: tokenizer.ggml.precompiled_charsmap"
	if len(b) < 4 {
		return nil, fmt.Errorf("%s: %d bytes", key, len(b))
	}
	size := uint64(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if size >= uint64(len(b)) || size%4 != 0 {
		return nil, fmt.Errorf("%s: trie of %d bytes in %d", key, size, len(b))
	}
	if b[len(b)-1] != 0 {
		return nil, fmt.Errorf("%s: last string has no end", key)
	}
	c := &charsmap{units: make([]uint32, size/4), values: string(b[size:])}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return c, nil
}

// A unit of the trie packs the label of its edge (bits 0–7, and bit 31 for
// units that are values), whether a value hangs below it (bit 8), and the
// offset of its children (bits 10–30, times 256 where bit 9 is set).
func unitOffset(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }

const (
	unitLabel = 1<<31 | 0xFF
	unitValue = 1 << 8
)

// longest returns the normal form of the longest mapped text that s begins
// with, and the size of that text, 0 for none. A damaged trie maps nothing.
func (c *charsmap) longest(s string) (normal string, size int) {
	if c == nil || len(c.units) == 0 {
		return "", 0
	}
	node := unitOffset(c.units[0])
	for i := 0; i < len(s) && s[i] != 0; i++ {
		node ^= uint32(s[i])
		if uint64(node) >= uint64(len(c.units)) {
			break
		}
		unit := c.units[node]
		if unit&unitLabel != uint32(s[i]) {
			break
		}
		node ^= unitOffset(unit)
		if unit&unitValue == 0 {
			continue
		}
		if uint64(node) >= uint64(len(c.units)) {
			break
		}
		at := c.units[node] &^ (1 << 31)
		if uint64(at) >= uint64(len(c.values)) {
			break
		}
		end := strings.IndexByte(c.values[at:], 0)
		normal, size = c.values[at:int(at)+end], i+1
	}
	return normal, size
}
