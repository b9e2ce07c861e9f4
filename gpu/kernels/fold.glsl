// A sum by the invocations of a workgroup: exact mode adds in 16 lanes (lanes.glsl), so
// the first 16 invocations have a part each; with FAST all have one. What they have is
// folded in half as often as it goes. A kernel with another number of adders defines it.
#ifndef ADDERS
#ifdef FAST
#define ADDERS WG
#else
#define ADDERS LANES
#endif
#endif
shared float adders[ADDERS];

// fold adds the parts of the adders; all invocations get the sum. Between one fold and
// the next there must be a sync.
float fold(float mine) {
	uint id = gl_LocalInvocationID.x;
	if (id < ADDERS) adders[id] = mine;
	sync();
	for (uint n = ADDERS / 2u; n > 0u; n /= 2u) {
		if (id < n) {
			PRECISE float s = adders[id] + adders[id + n];
			adders[id] = s;
		}
		sync();
	}
	return adders[0];
}
