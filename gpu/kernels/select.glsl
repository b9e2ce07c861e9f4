// Chooses the k largest of n keys, of equals the first. The including kernel defines
// WG, at most 256, and uint keyAt(uint i) before.

shared uint counts[256]; // by digit, then by invocation
shared uint equals[256];
shared uint picked;
shared uint rest;

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
		if (lid == 0u) {
			uint digit = 255u;
			uint above = 0u;
			while (digit > 0u && above + counts[digit] < left) {
				above += counts[digit];
				digit--;
			}
			picked = digit;
			rest = left - above;
		}
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
// one after another, each having gone through the keys [from, to); of those equal to
// key it may take from the returned rank up to ties.
uint placeOf(uint from, uint to, uint key, uint ties, out uint rank) {
	uint lid = gl_LocalInvocationID.x;
	uint more = 0u;
	uint same = 0u;
	for (uint i = from; i < to; i++) {
		uint k = keyAt(i);
		if (k > key) more++;
		if (k == key) same++;
	}
	counts[lid] = more;
	equals[lid] = same;
	sync();
	uint place = 0u;
	rank = 0u;
	for (uint i = 0u; i < lid; i++) {
		place += counts[i];
		rank += equals[i];
	}
	return place + min(rank, ties);
}
