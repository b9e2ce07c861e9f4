// Two words of halves (F16) or upper halves of floats (BF16) as floats. Halves are widened
// by integers: exact everywhere, other than unpackHalf2x16 where small floats are flushed.
vec4 widened(uvec2 v) {
#ifdef BF16
	return uintBitsToFloat(uvec4(v.x << 16, v.x & 0xFFFF0000u, v.y << 16, v.y & 0xFFFF0000u));
#else
	return vec4(halfToFloat(v.x & 0xFFFFu), halfToFloat(v.x >> 16), halfToFloat(v.y & 0xFFFFu), halfToFloat(v.y >> 16));
#endif
}
