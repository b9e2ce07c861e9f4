// The best of what the invocations of a workgroup of at most 256 have.
const uint none = 0xFFFFFFFFu;

// By subgroup in variants, else by invocation.
shared uint keys[256];
shared uint ids[256];
shared uint bads[256];

// The better of two: the larger key, the lower id of equals.
bool better(uint key, uint id, uint thanKey, uint thanID) {
	return key > thanKey || (key == thanKey && id < thanID);
}

// joinBest gives all invocations the largest key of all, of equals the lowest id, and the
// lowest bad id. The order in which they are compared does not matter.
void joinBest(inout uint key, inout uint id, inout uint bad) {
#ifdef SUBGROUP
	sync(); // what comes before has ended for all
	uint most = subgroupMax(key);
	id = subgroupMin(key == most ? id : none);
	key = most;
	bad = subgroupMin(bad);
	if (subgroupElect()) {
		keys[gl_SubgroupID] = key;
		ids[gl_SubgroupID] = id;
		bads[gl_SubgroupID] = bad;
	}
	sync();
	for (uint s = 0u; s < gl_NumSubgroups; s++) {
		if (better(keys[s], ids[s], key, id)) {
			key = keys[s];
			id = ids[s];
		}
		bad = min(bad, bads[s]);
	}
#else
	uint lid = gl_LocalInvocationID.x;
	keys[lid] = key;
	ids[lid] = id;
	bads[lid] = bad;
	sync();
	for (uint n = WG / 2u; n > 0u; n /= 2u) {
		if (lid < n) {
			if (better(keys[lid + n], ids[lid + n], keys[lid], ids[lid])) {
				keys[lid] = keys[lid + n];
				ids[lid] = ids[lid + n];
			}
			bads[lid] = min(bads[lid], bads[lid + n]);
		}
		sync();
	}
	key = keys[0];
	id = ids[0];
	bad = bads[0];
#endif
}
