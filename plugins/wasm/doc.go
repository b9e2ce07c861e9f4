// Package wasm reads WebAssembly 2.0 modules of strangers. It decodes a file strictly
// (Parse), refuses what a plugin may not contain or what would be expensive to compile
// (Check), and decides validity (Validate), each in time and memory linear in the file,
// without recursion on the input and without running or compiling anything.
//
// It follows the WebAssembly Core Specification 2.0: section 5 for the binary format,
// the appendix "Validation Algorithm" for Validate. What lies outside 2.0 (threads, tail
// calls, exceptions, garbage collection, relaxed SIMD, 64-bit memory, several memories,
// extended constant expressions) is refused by name. It imports nothing but the standard
// library.
//
// Why a reader of our own beside the one in wazero: that one allocates what a file claims
// before it looks (a function may claim four billion locals in six bytes), stops at the
// first pass where the rewriter of plugins/meter needs a second, and takes index one past
// the globals for granted once the rewriter has added a global there. The tests hold the
// two readers against each other on the specification's own tests and on random modules.
package wasm
