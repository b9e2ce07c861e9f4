// What the last workgroup of a product goes on with when it has CHAIN: the way of its rows
// to the next product (chain.glsl), which would be a dispatch of one workgroup for each
// row. All tiles of the rows are in one dispatch then.
#define ADD 1u
#define WHOLE 1u
#define FIRST(i) vec[BIAS * p.outRows + (i)]
#define SECOND(i) vec[(BIAS + BRANCH / 2u) * p.outRows + (i)]
#ifdef EXACT
#include "numerics.glsl"
#include "lanes.glsl"
#define ADDERS LANES
#else
#include "numerics_fast.glsl"
#define ADDERS 32u // whatever the workgroup is, and as in normchain_fast, for the sake of a row's bits
#endif
#include "chain.glsl"
#include "arrive.glsl"

// goOn does the rows from a row on, which a workgroup's invocations have stored.
void goOn(uint row, uint rows) {
	if (CHAIN == 0u || !isLast(gl_WorkGroupID.y, gl_NumWorkGroups.x)) return;
	for (uint r = row; r < min(row + XROWS, rows); r++) {
		chain(r, p.outRows, p.dst + r * p.dstStride);
		sync();
	}
}
