// Package meter rewrites WebAssembly modules so that they pay for what they run.
//
// A module gets two more globals, counters of 64 bits exported as "__gg_fuel" and
// "__gg_rest". The host sets them before a call and adds them after. The guest's code takes
// from the first, in advance, what the piece of code that follows may cost. Where a charge
// stands at the entry of a function, at the head of a loop or before a bulk instruction, and
// leaves less than zero, it calls a function that the module got as well: it moves the rest
// to the counter, a breath at a time, and where there is no rest it ends the guest with the
// trap "unreachable" and leaves the counter negative, which is how the host tells this trap
// from the guest's own. The other charges only subtract: between two that look at the counter
// no instruction runs twice, so that is a millisecond at most of the longest function that
// there may be, and the host looks when the call is over. The counters start at zero: whoever
// forgets to set them gets no code run.
//
// Compiled code cannot be interrupted, and all of Go waits for it where the collector of
// garbage needs every thread to stop. So between two breaths the guest asks for memory of
// no pages: the compiler makes that a visit to its runtime, which is Go and can stop.
//
// What is charged, and why nothing escapes:
//
//   - A function is cut into regions: the body of each loop, and the rest. Between two
//     passes of a region's head no instruction of the region runs twice, because only a
//     loop's head can be branched to backwards. So each head has a charge.
//   - A region is cut into pieces at every place where control may part or join. A piece
//     is charged at its own beginning, or, while that adds up to little, together with an
//     earlier piece of its region that is always run before it. (One charge of a whole
//     region at its head would be simpler, and would make each turn of an interpreter's
//     loop pay for all of its cases.)
//   - An instruction costs 1, or more if it takes longer (price.go). A branch costs 1 more
//     for each value that it carries. A call costs its function 64 more, and 1 for each
//     parameter, result and local, which bounds the depth of recursion and the work of
//     making frames.
//   - Bulk instructions are charged by their length before they run: memory.fill, copy
//     and init 1 for 16 bytes, memory.grow 4,096 for a page, the table instructions 1 for
//     an entry.
//   - A start function becomes the export "__gg_start", so that it too runs on fuel that
//     the host has given.
//
// Charges are written into the code, so fuel does not depend on who runs it: compiler and
// interpreter, any machine, the same module and input leave the same counter. Two things
// stay the engine's own: which bits a NaN has, so a guest that looks at them may go
// another way; and how deep calls may nest, 2,000 in wazero's interpreter, more than fuel
// allows in its compiler. The tests show that nothing else does: the specification's own,
// metered as unmetered, and random modules, of which a million were run once
// (TestRandomModules) and thousands are in each run of the tests.
//
// A charge that looks is a block in the code, and a compiler's time grows with the square of
// the blocks in a function: wasm.Check therefore counts a loop as four, and no other charge
// looks. Charging by a load
// that goes out of bounds adds no block, but made code up to a third slower.
//
// The original is parsed and validated first (plugins/wasm): a module that names the
// global or the function behind its last would be invalid as delivered, valid once ours
// stands there, and would fill its own tank. For the same reason every index of a local
// is checked: the rewriter adds two of those to a function.
//
// The result holds the module's sections and the names of its functions; other custom
// sections are left out, for they speak of offsets that are gone, or are the host's to
// read from the original.
package meter
