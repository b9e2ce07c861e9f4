// The columns of a matrix of floats.
vec4 columns(uint tile, uint quad) {
#ifdef F32
	return uintBitsToFloat(FETCH(weights, tile + STRIP * quad));
#else
	uvec4 v = FETCH(weights, tile + STRIP * (quad / 2u));
	return widened((quad & 1u) == 0u ? v.xy : v.zw);
#endif
}
