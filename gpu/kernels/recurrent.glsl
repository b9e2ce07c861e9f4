// What the recurrent operations share (rule 10 of gpu/DESIGN.md). An invocation has one
// output column of a sequence and walks along the sequence's rows in ascending order,
// so that no two invocations share anything but inputs. The state of a slot lies in the
// order in which neighbouring invocations read it side by side. A row at position 0
// starts from zeros; only the first row of a sequence in a batch can be at position 0.

#include "act.glsl"

#define SEQ_WORDS 4u // slot, first row, rows, first position

uint seqSlot;
uint seqRow;
uint seqRows;
bool seqFresh;

// Goes to the sequence of the workgroup; false when the batch has no such one.
bool selectSeq(uint count, uint seqs) {
	if (gl_WorkGroupID.y >= batch[count]) return false;
	uint at = seqs + gl_WorkGroupID.y * SEQ_WORDS;
	seqSlot = batch[at];
	seqRow = batch[at + 1u];
	seqRows = batch[at + 2u];
	seqFresh = batch[at + 3u] == 0u;
	return true;
}

// The fold of 16 lanes as a walk: pairs of lanes (l, l+8) come in the order 0, 4, 2, 6,
// 1, 5, 3, 7, in which a tree can be added up with three sums kept.
uint foldLane(uint i) { return ((i & 1u) << 2) | (i & 2u) | (i >> 2); }

struct Fold { float one; float two; float four; float sum; };

Fold folded(Fold f, uint i, float x) {
	PRECISE float s;
	if ((i & 1u) == 0u) {
		f.one = x;
		return f;
	}
	s = f.one + x;
	if ((i & 2u) == 0u) {
		f.two = s;
		return f;
	}
	s = f.two + s;
	if ((i & 4u) == 0u) {
		f.four = s;
		return f;
	}
	s = f.four + s;
	f.sum = s;
	return f;
}
