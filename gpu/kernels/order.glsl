// Floats in their order as unsigned integers, which no device flushes or compares in
// its own way: a larger number has a larger key, −0 and +0 have one, and what is not
// finite is known by its exponent.
uint orderKey(uint bits) {
	if (bits == 0x80000000u) return 0x80000000u;
	return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

bool notFinite(uint bits) { return (bits & 0x7F800000u) == 0x7F800000u; }
