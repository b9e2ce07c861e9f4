// Halves by integer arithmetic: gpu/tensor/f16.go. Drivers round packHalf2x16 as they
// like and may flush small values; this they cannot.

// NaN by its bits, since shading languages promise nothing about comparisons with it.
bool isNaN(float x) { return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u; }

// A half widened; exact, and right where subnormal floats are flushed.
float halfToFloat(uint h) {
	uint sign = (h & 0x8000u) << 16;
	uint e = (h >> 10) & 0x1Fu;
	uint man = h & 0x3FFu;
	if (e == 0u) {
		float f = float(man) * 5.9604644775390625e-8; // 2⁻²⁴
		return uintBitsToFloat(floatBitsToUint(f) | sign);
	}
	if (e == 0x1Fu) return uintBitsToFloat(sign | 0x7F800000u | (man << 13));
	return uintBitsToFloat(sign | ((e + 112u) << 23) | (man << 13));
}

// v / 2^shift rounded to nearest, ties to even.
uint roundShift(uint v, uint shift) {
	uint below = (1u << (shift - 1u)) - 1u;
	return (v + below + ((v >> shift) & 1u)) >> shift;
}

// The nearest half, ties to even; a NaN becomes a quiet NaN.
uint floatToHalf(float f) {
	uint b = floatBitsToUint(f);
	uint sign = (b >> 16) & 0x8000u;
	b &= 0x7FFFFFFFu;
	if (b > 0x7F800000u) return sign | 0x7E00u | ((b >> 13) & 0x3FFu);
	if (b >= 0x477FF000u) return sign | 0x7C00u;
	if (b < 0x33000001u) return sign;
	if (b < 0x38800000u) return sign | roundShift((b & 0x7FFFFFu) | 0x800000u, 126u - (b >> 23));
	return sign | roundShift(b - 0x38000000u, 13u);
}

float roundHalf(float x) { return halfToFloat(floatToHalf(x)); }

// Half i of a buffer of packed halves is half of word i / 2.
float lowHalf(uint word) { return halfToFloat(word & 0xFFFFu); }
float highHalf(uint word) { return halfToFloat(word >> 16); }
