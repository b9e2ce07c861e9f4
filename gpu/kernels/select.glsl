// Chooses the k largest of n keys, of equals the first. The including kernel defines
// WG, a power of two of at most 256, and uint keyAt(uint i) before, and calls number()
// first of all.

shared uint counts[256]; // by digit, then by invocation
shared uint equals[256];
shared uint picked;
shared uint rest;

uint self; // the number of this invocation among those of the workgroup

#ifdef SUBGROUP
shared uvec2 totals[256]; // by subgroup

// before is the sum of what the invocations with lower numbers bring.
uvec2 before(uvec2 x) {
	uvec2 sum = subgroupExclusiveAdd(x);
	uvec2 total = subgroupAdd(x);
	if (subgroupElect()) totals[gl_SubgroupID] = total;
	sync();
	for (uint s = 0u; s < gl_SubgroupID; s++) sum += totals[s];
	sync();
	return sum;
}

// Numbers go from subgroup to subgroup: which invocations those have is the driver's.
void number() { self = before(uvec2(1u)).x; }
#else
void number() { self = gl_LocalInvocationID.x; }
#endif

// pick takes the digit of the left-th largest of the keys that were counted.
void pick(uint left) {
#ifdef SUBGROUP
	const uint each = 256u / WG;
	uint first = 255u - self * each; // digits in descending order
	uint own = 0u;
	for (uint i = 0u; i < each; i++) own += counts[first - i];
	uint above = before(uvec2(own)).x;
	for (uint i = 0u; i < each; i++) {
		uint n = counts[first - i];
		if (above < left && above + n >= left) {
			picked = first - i;
			rest = left - above;
		}
		above += n;
	}
#else
	if (self != 0u) return;
	uint digit = 255u;
	uint above = 0u;
	while (digit > 0u && above + counts[digit] < left) {
		above += counts[digit];
		digit--;
	}
	picked = digit;
	rest = left - above;
#endif
}

// The k-th largest key, and how many of the keys equal to it belong to the k largest:
// the digits of the key from the highest on, each from a histogram of the keys that
// begin like it. 1 ≤ k ≤ n.
uint threshold(uint n, uint k, out uint ties) {
	uint lid = gl_LocalInvocationID.x;
	uint prefix = 0u;
	uint mask = 0u;
	uint left = k;
	for (uint shift = 32u; shift > 0u;) {
		shift -= 8u;
		for (uint i = lid; i < 256u; i += WG) counts[i] = 0u;
		sync();
		for (uint i = lid; i < n; i += WG) {
			uint key = keyAt(i);
			if ((key & mask) == prefix) atomicAdd(counts[(key >> shift) & 255u], 1u);
		}
		sync();
		pick(left);
		sync();
		prefix |= picked << shift;
		mask |= 255u << shift;
		left = rest;
		sync();
	}
	ties = left;
	return prefix;
}

// Where this invocation's part of the chosen begins when all invocations write theirs
// one after another in the order of their numbers, each having gone through the keys
// [from, to); of those equal to key it may take from the returned rank up to ties.
uint placeOf(uint from, uint to, uint key, uint ties, out uint rank) {
	uint more = 0u;
	uint same = 0u;
	for (uint i = from; i < to; i++) {
		uint k = keyAt(i);
		if (k > key) more++;
		if (k == key) same++;
	}
#ifdef SUBGROUP
	sync(); // the loops have ended for all
	uvec2 sums = before(uvec2(more, same));
	uint place = sums.x;
	rank = sums.y;
#else
	counts[self] = more;
	equals[self] = same;
	sync();
	uint place = 0u;
	rank = 0u;
	for (uint i = 0u; i < self; i++) {
		place += counts[i];
		rank += equals[i];
	}
#endif
	return place + min(rank, ties);
}
