// The scales of Q4_K and Q5_K: six bits of a scale and a minimum for each block, and d
// and dmin for the super-block, in the plane that begins at SCALES.
#define MINIMA
struct Super { float d; float m; uvec3 bits; };

Super superOf(uint tile, uint s) {
	uvec4 v = FETCH(weights, tile + SCALES + STRIP * s);
	return Super(HALF_LOW(v.x), HALF_HIGH(v.x), v.yzw);
}

float sixBits(uint low, uint high, uint i) {
	return float(int(((low >> (4u * i)) & 15u) | (((high >> (2u * i)) & 3u) << 4)));
}

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint i = b & 7u;
	d = vec2(s.d * sixBits(s.bits.x, s.bits.z, i));
	m = vec2(-(s.m * sixBits(s.bits.y, s.bits.z >> 16, i)));
}
