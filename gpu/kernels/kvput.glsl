// Storing a part of a head into a page of a cache: a unit of eight values, with KV_Q8 a
// block of 32 because that shares a scale. The including kernel has declared the buffers
// keys and values and defined SOURCE(i), the bits of value i.
#ifdef KV_Q8
#define PART 32u
#else
#define PART 8u
#endif

void put(bool isKey, uint at, uint word) {
	if (isKey) keys[at] = word;
	else values[at] = word;
}

// Element d of the head that begins at src; a head whose width is no multiple of eight
// is filled up with zeros.
uint element(uint src, uint d, uint dim) { return d < dim ? SOURCE(src + d) : 0u; }

#ifdef KV_Q8
// The byte nearest to x · inverse within ±127.
uint quantise(uint bits, float inverse) {
	PRECISE float s = uintBitsToFloat(bits) * inverse;
	if (s < -127.0) s = -127.0;
	if (s > 127.0) s = 127.0;
	return uint(roundToInt(s)) & 0xFFu;
}

// A half of a word of scales that another invocation may be writing the rest of.
void putScale(bool isKey, uint at, uint scale) {
	uint shift = (at & 1u) * 16u;
	uint keep = 0xFFFF0000u >> shift;
	if (isKey) {
		atomicAnd(keys[at / 2u], keep);
		atomicOr(keys[at / 2u], scale << shift);
	} else {
		atomicAnd(values[at / 2u], keep);
		atomicOr(values[at / 2u], scale << shift);
	}
}

void storePart(bool isKey, uint src, uint head, uint part, uint cell, uint dim) {
	uint largest = 0u; // as bits: the order of magnitudes, NaN above all
	for (uint i = 0u; i < PART; i++) largest = max(largest, element(src, part * PART + i, dim) & 0x7FFFFFFFu);
	PRECISE float wide = uintBitsToFloat(largest) * uintBitsToFloat(0x3C010204u); // 1/127
	uint scale = floatToHalf(wide);
	float inverse = 0.0;
	if (scale != 0u) inverse = Recip(halfToFloat(scale));
	putScale(isKey, 2u * head + scaleHalf(part, cell, dim), scale);
	for (uint u = part * 4u; u < min(part * 4u + 4u, kvUnits(dim)); u++) {
		uint at = head + (isKey ? keyUnit(u, cell) : valueUnit(u, cell, dim));
		for (uint j = 0u; j < KV_UNIT; j++) {
			uint word = 0u;
			for (uint i = 0u; i < 4u; i++) {
				word |= quantise(element(src, u * 8u + j * 4u + i, dim), inverse) << (8u * i);
			}
			put(isKey, at + j, word);
		}
	}
}
#else
void storePart(bool isKey, uint src, uint head, uint part, uint cell, uint dim) {
	uint at = head + (isKey ? keyUnit(part, cell) : valueUnit(part, cell, dim));
	for (uint j = 0u; j < KV_UNIT; j++) {
#ifdef KV_F16
		uint d = part * PART + 2u * j;
		uint low = floatToHalf(uintBitsToFloat(element(src, d, dim)));
		uint high = floatToHalf(uintBitsToFloat(element(src, d + 1u, dim)));
		put(isKey, at + j, low | (high << 16));
#else
		put(isKey, at + j, element(src, part * PART + j, dim));
#endif
	}
}
#endif
