// Kernels that show what metering costs. Built by build.sh, twice: scalar and with
// 128-bit vectors.
#define EXPORT(name) __attribute__((export_name(#name))) name
typedef unsigned u32;
typedef unsigned long long u64;

#define N 65536
static float logits[N];
float copy[N];
static u32 mask[N / 32], counts[256];
static u32 list[4096];

void EXPORT(fill)(void) {
	u32 x = 1;
	for (int i = 0; i < N; i++) {
		x = x * 1664525u + 1013904223u;
		logits[i] = (float)(x >> 8) / (1 << 24) * 20 - 10;
	}
	for (int i = 0; i < 4096; i++) list[i] = (x = x * 1664525u + 1013904223u);
	for (int i = 0; i < N / 32; i++) mask[i] = (x = x * 1664525u + 1013904223u);
}

// One loop without branches.
void EXPORT(scale)(void) {
	for (int i = 0; i < N; i++) copy[i] = logits[i] * 0.7f;
}

// A loop with a small branch.
u32 EXPORT(argmax)(void) {
	u32 best = 0;
	for (u32 i = 1; i < N; i++)
		if (logits[i] > logits[best]) best = i;
	return best;
}

// Branches that depend on bits.
void EXPORT(apply_mask)(void) {
	for (int i = 0; i < N; i++)
		if (!(mask[i >> 5] >> (i & 31) & 1)) copy[i] = -1e30f;
}

// A heap of 40: nested loops, unforeseeable branches.
float EXPORT(top40)(void) {
	float heap[40];
	int n = 0;
	for (int i = 0; i < N; i++) {
		float v = logits[i];
		if (n < 40) {
			int at = n++;
			while (at && heap[(at - 1) / 2] > v) heap[at] = heap[(at - 1) / 2], at = (at - 1) / 2;
			heap[at] = v;
		} else if (v > heap[0]) {
			int at = 0;
			for (;;) {
				int c = 2 * at + 1;
				if (c >= 40) break;
				if (c + 1 < 40 && heap[c + 1] < heap[c]) c++;
				if (heap[c] >= v) break;
				heap[at] = heap[c], at = c;
			}
			heap[at] = v;
		}
	}
	return heap[0];
}

// Calls: a function that calls itself.
static __attribute__((noinline)) u32 fibonacci(u32 n) {
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
u32 EXPORT(fib)(void) { return fibonacci(22); }

// Loops in loops.
u32 EXPORT(sort)(void) {
	u32 a[4096];
	for (int i = 0; i < 4096; i++) a[i] = list[i];
	for (int gap = 2048; gap; gap /= 2)
		for (int i = gap; i < 4096; i++) {
			u32 v = a[i];
			int j = i;
			for (; j >= gap && a[j - gap] > v; j -= gap) a[j] = a[j - gap];
			a[j] = v;
		}
	return a[2048];
}

// A small interpreter: a switch in a loop.
u32 EXPORT(interpret)(void) {
	static const unsigned char program[] = {0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 9, 5, 1, 8, 0, 6, 4, 10};
	u32 a = 1, b = 7, n = 0, steps = 0;
	for (u32 pc = 0; steps < 200000; steps++) {
		switch (program[pc++]) {
		case 0: a += b; break;
		case 1: b ^= a; break;
		case 2: a = a << 3 | a >> 29; break;
		case 3: b -= 5; break;
		case 4: a *= 3; break;
		case 5: n += a > b; break;
		case 6: b = b * b + 1; break;
		case 7: counts[a & 255]++; break;
		case 8: a ^= counts[b & 255]; break;
		case 9: if (a & 1) pc++; break;
		case 10: pc = 0; break;
		}
	}
	return a ^ n;
}

// The host may look at the results, so they are not optimised away.
float *EXPORT(results)(void) { return copy; }
