// Joins the chunks of a row that VALUES or CHUNK of attention.glsl left in part: a
// workgroup for each row and group of heads, an invocation for four columns.

#define ACT_ACCESS coherent
#include "act.glsl"
STORAGE(2) readonly buffer Sinks { uint sinks[]; };
STORAGE(3) readonly buffer Part { uvec4 part[]; };
STORAGE(4) buffer Out { uvec4 outs[]; };
#define READ_ONLY_PART
#include "attention_rows.glsl"
#include "attention_whole.glsl"

void main() {
	if (gl_WorkGroupID.y >= batch[p.rows]) return;
	selectHeads(gl_WorkGroupID.x);
	selectRows(gl_WorkGroupID.y, gl_WorkGroupID.y + 1u);
	uint chunks = last / CHUNK_SIZE - first / CHUNK_SIZE + 1u;
	uint at = (row * p.kvHeads * headGroups() + gl_WorkGroupID.x) * p.chunks * PART_SIZE;
	for (uint quad = gl_LocalInvocationID.x; quad < QUADS; quad += WG) {
		Columns a = noColumns();
#ifdef FAST
		Sofar s = nothing();
		for (uint i = 0u; i < chunks; i++) {
			uint chunk = at + i * PART_SIZE;
			s = further(s, partLoad(chunk), partLoad(chunk + PART_SUM));
			a = blendColumns(s.before, a, s.now, partColumns(chunk, quad));
		}
		a = timesColumns(a, ending(s));
#else
		for (uint i = 0u; i < chunks; i++) a = addColumns(a, partColumns(at + i * PART_SIZE, quad));
#endif
		emit(quad, a);
	}
	putWholes();
}
