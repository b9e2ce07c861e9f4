// A read-only buffer of texels of 16 bytes, as a storage buffer or, with TEXEL defined,
// read by texel fetches (device.Binding.Texels): FETCHED(n, block, name) declares binding
// n, and FETCH(name, i) is its texel i. The block's name is given, for ES cannot make one
// by pasting.
#ifdef TEXEL
#define FETCHED(n, block, name) TEXELS(n) uniform highp usamplerBuffer name;
#define FETCH(name, i) texelFetch(name, int(i))
#else
#define FETCHED(n, block, name) STORAGE(n) readonly buffer block { uvec4 name[]; };
#define FETCH(name, i) name[i]
#endif

// Component i of a texel. With a constant i it costs nothing.
uint word(uvec4 v, uint i) { return i < 2u ? (i == 0u ? v.x : v.y) : (i == 2u ? v.z : v.w); }

// A row's texels in a tile of a packed matrix (gpu/compute/pack.go): it begins at
// inTile(row) and goes on in steps of STRIP.
#define STRIP 8u
#define inTile(row) ((row) / STRIP * (p.tileTexels / 4u) + (row) % STRIP)
