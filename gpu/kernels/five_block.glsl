// A block of 5-bit numbers: nibbles, and plane 1 with the fifth bits.
struct Block { uvec4 q; uint high; };

Block blockOf(uint tile, uint b) {
	return Block(FETCH(weights, tile + STRIP * b), word(FETCH(weights, tile + p.plane1 + STRIP * (b >> 2)), b & 3u));
}

// The numbers of a quad as bytes.
uint stored(Block k, uint quad) { return nibbles(word(k.q, quad >> 1), quad & 1u) | bitsFour(k.high, quad); }
