// The two buffers of every operation on activations: the batch and the arena of the row
// set. Activations are words; integers must not pass through a float. A kernel whose
// invocations read what others wrote defines ACT_ACCESS as coherent.
#ifndef ACT_ACCESS
#define ACT_ACCESS
#endif
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) ACT_ACCESS buffer Act { uint act[]; };

float load(uint at) { return uintBitsToFloat(act[at]); }
void store(uint at, float x) { act[at] = floatBitsToUint(x); }
