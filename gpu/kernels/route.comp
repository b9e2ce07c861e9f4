#include "common.glsl"
#include "numerics.glsl"

// Chooses the experts of a row (rule 8 of gpu/DESIGN.md): probabilities from the
// router's logits, groups that count as much as their best two, the TOPK largest scores
// in descending order, their weights. One workgroup per row, the same in both modes.
//
// An expert's place in the list is the number of experts before it. Each invocation
// counts for its own experts, which needs one synchronisation, where choosing the best
// of the rest TOPK times would need one for each. Scores are compared as integers in the
// order of floats, NaN below all: every place is then taken by exactly one expert, and
// no row can make an id that does not exist.

#define SOFTMAX 0u
#define SIGMOID 1u
#define RAW 2u
#define SQRT_SOFTPLUS 3u
#define RAW_SIGMOID 4u

CONSTANT(0, WG, 64)
CONSTANT(1, KIND, 0)
CONSTANT(2, EXPERTS, 8)
CONSTANT(3, TOPK, 2)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint src; uint srcStride;
	uint ids; uint idsStride;
	uint weights; uint weightsStride;
	uint biased; // 1: there is a bias for choosing
	uint groups; uint used; // groups of experts, 1 = none
	uint members; // experts of a group
	uint share;
	uint norm;
	float factor; // of the weights, 1 = none
} p;

#include "act.glsl"
STORAGE(2) readonly buffer Bias { uint bias[]; };

shared float prob[EXPERTS];
shared uint key[EXPERTS];
shared uint groupKey[EXPERTS];
shared float chosen[TOPK];
shared float lane[16];

// An integer in the order of floats; +0 and −0 are one, NaN is below all.
uint keyOf(float x) {
	uint b = floatBitsToUint(x);
	if (isNaN(x)) return 0u;
	if (b == 0x80000000u) b = 0u;
	return (b & 0x80000000u) != 0u ? ~b : b | 0x80000000u;
}

// The float of a key; a NaN comes back as one.
float ofKey(uint k) {
	if (k == 0u) return uintBitsToFloat(0x7FC00000u);
	return uintBitsToFloat((k & 0x80000000u) != 0u ? k & 0x7FFFFFFFu : ~k);
}

const uint lowest = 0x007FFFFFu; // −∞

// Turns the values of one of the two lists into their softmax. NaN may be lost from the
// largest value, but not from the exponentials.
#define SOFTMAX_OF(list, n) { \
	float m = list[0]; \
	for (uint i = 1u; i < n; i++) m = max(m, list[i]); \
	sync(); \
	for (uint i = gl_LocalInvocationID.x; i < n; i += WG) { PRECISE float d = list[i] - m; list[i] = Exp(d); } \
	sync(); \
	for (uint l = gl_LocalInvocationID.x; l < 16u; l += WG) { \
		PRECISE float s = 0.0; \
		for (uint i = l; i < n; i += 16u) s = s + list[i]; \
		lane[l] = s; \
	} \
	sync(); \
	float r = Recip(foldLane()); \
	for (uint i = gl_LocalInvocationID.x; i < n; i += WG) { PRECISE float q = list[i] * r; list[i] = q; } \
	sync(); \
}

float foldLane() {
	PRECISE float s0 = lane[0] + lane[8];
	PRECISE float s1 = lane[1] + lane[9];
	PRECISE float s2 = lane[2] + lane[10];
	PRECISE float s3 = lane[3] + lane[11];
	PRECISE float s4 = lane[4] + lane[12];
	PRECISE float s5 = lane[5] + lane[13];
	PRECISE float s6 = lane[6] + lane[14];
	PRECISE float s7 = lane[7] + lane[15];
	s0 = s0 + s4;
	s1 = s1 + s5;
	s2 = s2 + s6;
	s3 = s3 + s7;
	s0 = s0 + s2;
	s1 = s1 + s3;
	s0 = s0 + s1;
	return s0;
}

void probabilities(uint row) {
	for (uint e = gl_LocalInvocationID.x; e < EXPERTS; e += WG) {
		PRECISE float x = load(p.src + row * p.srcStride + e);
		if (KIND == SIGMOID) x = SigmoidF(x);
		if (KIND == SQRT_SOFTPLUS) {
			float s = SoftplusF(x);
			x = s * Rsqrt(s);
		}
		prob[e] = x;
	}
	sync();
	if (KIND == SOFTMAX) SOFTMAX_OF(prob, EXPERTS)
}

// Puts the experts of the groups that are not used below all others.
void dropGroups() {
	for (uint g = gl_LocalInvocationID.x; g < p.groups; g += WG) {
		uint best = key[g * p.members];
		uint second = 0u;
		for (uint i = 1u; i < p.members; i++) {
			uint k = key[g * p.members + i];
			second = max(second, min(k, best));
			best = max(best, k);
		}
		PRECISE float sum = ofKey(best);
		if (p.members > 1u) sum = sum + ofKey(second);
		groupKey[g] = keyOf(sum);
	}
	sync();
	for (uint e = gl_LocalInvocationID.x; e < EXPERTS; e += WG) {
		uint g = e / p.members;
		uint place = 0u;
		for (uint i = 0u; i < p.groups; i++) {
			if (groupKey[i] > groupKey[g] || (groupKey[i] == groupKey[g] && i < g)) place++;
		}
		if (place >= p.used) key[e] = lowest;
	}
	sync();
}

void choose(uint row) {
	for (uint e = gl_LocalInvocationID.x; e < EXPERTS; e += WG) {
		PRECISE float s = prob[e];
		if (p.biased != 0u) s = s + uintBitsToFloat(bias[e]);
		key[e] = keyOf(s);
	}
	sync();
	if (p.groups > 1u) dropGroups();
	for (uint e = gl_LocalInvocationID.x; e < EXPERTS; e += WG) {
		uint k = key[e];
		uint place = 0u;
		for (uint i = 0u; i < EXPERTS; i++) {
			if (key[i] > k || (key[i] == k && i < e)) place++;
		}
		if (place < TOPK) {
			uint id = e / p.share;
			act[p.ids + row * p.idsStride + place] = id;
			chosen[place] = prob[id];
		}
	}
	sync();
}

void main() {
	uint row = gl_WorkGroupID.y;
	if (row >= batch[p.rows]) return;
	probabilities(row);
	choose(row);
	if (KIND == RAW) SOFTMAX_OF(chosen, TOPK)
	float r = 1.0;
	if (p.norm != 0u) {
		PRECISE float sum = 0.0;
		for (uint k = 0u; k < TOPK; k++) {
			float w = chosen[k];
			if (KIND == RAW_SIGMOID) w = SigmoidF(w);
			sum = sum + w;
		}
		r = Recip(sum < 6.103515625e-5 ? 6.103515625e-5 : sum);
	}
	for (uint k = gl_LocalInvocationID.x; k < TOPK; k += WG) {
		PRECISE float w = chosen[k];
		if (KIND == RAW_SIGMOID) w = SigmoidF(w);
		if (p.norm != 0u) w = w * r;
		if (p.factor != 1.0) w = w * p.factor;
		store(p.weights + row * p.weightsStride + k, w);
	}
}
