// The levels of the IQ4 formats: −127, −104, −83, −65, −49, −35, −22, −10, 1, 13, 25, 38,
// 53, 69, 89, 113.
#define LEVELS0 0xBFAD9881u
#define LEVELS1 0xF6EADDCFu
#define LEVELS2 0x26190D01u
#define LEVELS3 0x71594535u
#include "levels.glsl"
