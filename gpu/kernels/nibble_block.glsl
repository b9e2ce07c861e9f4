// A block of 4-bit numbers.
struct Block { uvec4 q; };

Block blockOf(uint tile, uint b) { return Block(FETCH(weights, tile + STRIP * b)); }
