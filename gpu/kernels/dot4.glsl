// Dot products of four signed bytes (SPV_KHR_integer_dot_product), for variants of products
// in fast mode: activations of 13 bits are two signed bytes each, 256·high + low, so that
// two dot products make the whole number that four multiplications make, and the same bits.
// With LESS a code is less than its number: what the sums have too much is taken off at the
// end of a group, LESS times the sum of its activations. All of it is exact in float32.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int packedDot(uint a, uint b, spirv_literal int form); // OpSDot

#define DOT(a, b) packedDot(a, b, 0) // form 0: PackedVectorFormat4x8Bit

// Of four activations, halves of two words, the bytes of each kind.
uint lowBytes(uvec2 w) {
	return (w.x & 0xFFu) | ((w.x >> 8) & 0xFF00u) | ((w.y & 0xFFu) << 16) | ((w.y << 8) & 0xFF000000u);
}
uint highBytes(uvec2 w) {
	w = ((w & 0x7FFF7FFFu) + 0x00800080u) ^ (w & 0x80008000u); // 128 more each, for the sign of low
	return ((w.x >> 8) & 0xFFu) | ((w.x >> 16) & 0xFF00u) | ((w.y << 8) & 0xFF0000u) | (w.y & 0xFF000000u);
}

// The sums of codes of what the dot products of numbers have summed up.
vec4 sumOf(ivec4 high, ivec4 low, vec4 total) {
	vec4 s = vec4(high * 256 + low);
#if LESS != 0
	s -= float(LESS) * total;
#endif
	return s;
}
