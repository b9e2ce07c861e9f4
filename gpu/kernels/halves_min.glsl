// Scales and minima that are two halves in a word for each block, in the plane that
// begins at WORDS. They are read block by block.
#define MINIMA
struct Super { uint none; };

Super superOf(uint tile, uint s) { return Super(0u); }

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint w = word(FETCH(weights, tile + WORDS + STRIP * (b >> 2)), b & 3u);
	d = vec2(HALF_LOW(w));
	m = vec2(HALF_HIGH(w));
}
