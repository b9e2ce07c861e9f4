// The last workgroup of several goes on with what all of them made, in the same dispatch.
// The including kernel has declared counts, a coherent buffer of counters that are 0
// between dispatches, and what workgroups leave to each other as coherent. Nobody waits for
// anybody, so that no workgroup need run beside another one.
shared uint arrived;

// isLast tells all invocations of a workgroup whether it is the last one of so many to
// come here. It then sees what the others wrote before: the invocation that counts orders
// memory on both sides of its counting, for barrier() orders shared memory alone.
bool isLast(uint counter, uint workgroups) {
	memoryBarrierBuffer();
	barrier();
	if (gl_LocalInvocationID.x == 0u) {
		memoryBarrierBuffer();
		arrived = atomicAdd(counts[counter], 1u) + 1u;
		memoryBarrierBuffer();
		if (arrived == workgroups) counts[counter] = 0u; // for the next dispatch
	}
	sync();
	memoryBarrierBuffer();
	return arrived == workgroups;
}
