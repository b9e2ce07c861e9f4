// Scales that are a half for each block, in the plane that begins at HALVES.
struct Super { uvec4 d; };

Super superOf(uint tile, uint s) { return Super(FETCH(weights, tile + HALVES + STRIP * s)); }

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint w = word(s.d, (b >> 1) & 3u);
	d = vec2(HALF_LOW((b & 1u) == 0u ? w : w >> 16));
	m = vec2(0.0);
}
