package gl

// blocks lays parameter blocks out in one uniform buffer, equal ones once. A std140
// block is whole vectors of 16 bytes and begins where the device lets it be bound.
type blocks struct {
	align int64
	data  []byte
	at    map[string]int64 // by content
}

func newBlocks(align int64) *blocks { return &blocks{align: align, at: map[string]int64{}} }

// place gives the offset and the size of a block.
func (b *blocks) place(block []byte) (offset, size int64) {
	if len(block) == 0 {
		return 0, 0
	}
	size = (int64(len(block)) + 15) &^ 15
	if at, ok := b.at[string(block)]; ok {
		return at, size
	}
	offset = (int64(len(b.data)) + b.align - 1) / b.align * b.align
	grown := make([]byte, offset+size)
	copy(grown, b.data)
	copy(grown[offset:], block)
	b.data = grown
	b.at[string(block)] = offset
	return offset, size
}
