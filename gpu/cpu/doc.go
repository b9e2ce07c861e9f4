// Package cpu is the backend for the processor: C kernels behind cgo, a worker pool,
// weights repacked at load.
//
// It owns the layouts below, the compiled form of a plan and the threads; it imports
// gpu/ops and gpu/tensor only (and gpu/ops/ref in a build without cgo, which has no
// kernels and hands plans to the reference executor). It promises
//
//   - exact mode: the bits of gpu/DESIGN.md, with any kernels and thread count;
//   - fast mode: a row's result depends on its own sequence alone, because every row
//     passes the same instructions in the same order whatever stands beside it;
//   - no Go allocation per batch once buffers have grown;
//   - idle threads sleep: they spin for some 50 microseconds after a batch;
//   - a thread whose processor another process wants is left out for a while (pace.go).
//
// # From plan to run
//
// compile.go turns a plan into a list of gl_op structs outside the Go heap: matrix
// products of one input become one operation (q, k and v; gate and up with their
// GLU), their input is rounded to 8 bits once, and each operation knows how it is
// divided over threads and whether a barrier stands before it. pool.c walks the
// list with all threads in one call from Go per batch. Activations lie in a row-major
// arena whose rows are those of the batch, so threads that take different rows share
// no memory.
//
// Matrix products are divided into chunks of tiles that threads take from a counter;
// attention into (row, group of heads) and, when rows are few, chunks of positions;
// everything else by rows, or by columns for wide outputs.
//
// # Layouts
//
// A tile is eight weight rows. It holds the scales of all its blocks, padded to 64
// bytes, then the quants of all its blocks; a block is 32 columns (k) of the eight
// rows. Rows beyond the matrix are zero. The unit of the quants is a 32-byte vector
// in which 32-bit lane r belongs to row r and byte j of the lane to column 4g+j, for
// group g = 0…7 of the block:
//
//	            lane 0       lane 1             lane 7
//	vector g  | r0: k k+1 k+2 k+3 | r1: … | … | r7: … |     k = 4g
//
//	8 bits  vectors 0…7: signed bytes of groups 0…7                         256 B
//	4 bits  vectors 0…3: low nibble group i, high nibble group i+4          128 B
//	5 bits  4 bits, then one vector: bit g of a byte is group g's fifth     160 B
//	6 bits  4 bits, then two vectors: bit pair i of the first is group i's
//	        fifth and sixth bit, of the second group i+4's                  192 B
//	2 bits  two vectors: bit pair i is group i, group i+4                    64 B
//	3 bits  2 bits, then one vector of third bits                            96 B
//
// so that four activations are one broadcast, vpmaddubsw and vpmaddwd leave each
// row's sum in its lane, and the scales of eight rows are one vector. Scale records
// (r: eight values, one per row):
//
//	Q4_0 Q5_0 Q8_0 IQ4_NL   per block   half d[r]                              16 B
//	Q4_1 Q5_1               per block   half d[r], half m[r]                   32 B
//	MXFP4                   per block   float d[r]                             32 B
//	codes                   per block   float d[r] for each half               64 B
//	Q4_K Q5_K               per 8       half d[r], half dmin[r],
//	                                    u8 scale[8][r], u8 min[8][r]          160 B
//	Q6_K Q3_K               per 8       half d[r], s8 scale[16][r]            144 B
//	Q2_K                    per 8       half d[r], half dmin[r],
//	                                    u8 (scale | min<<4)[16][r]            160 B
//	IQ4_XS                  per 8       half d[r], s8 scale[8][r]              80 B
//
// IQ4_NL, IQ4_XS and MXFP4 keep their codes in 4 bits and look the levels up. F32, F16
// and BF16 are multiplied from the file's bytes with float activations: no second
// copy. Types without a kernel (IQ1…IQ3, TQ, NVFP4) are split exactly into signed
// bytes and a float scale per 16 (tensor.Codes).
//
// Both modes read the same tiles: fast mode multiplies them with signed bytes
// (k_quant.h), exact mode with whole numbers of 23 bits (k_whole.h). F32, F16 and BF16
// have kernels for each (k_float.h, k_exact.h).
//
// # Figures
//
// AMD EPYC (Zen 2), one core of two, other work on the machine; the read ceiling of
// the core was 14.7 to 16.7 GB/s in the same minutes. Matrix times vector from
// memory | from cache, GB/s of packed bytes; 512 rows, GFLOP/s:
//
//	Q8_0 15.7 | 42   88     Q4_K 14.0 | 27  136     Q4_0 15.8 | 31  140
//	Q5_0 13.9 | 28  133     Q6_K 14.1 | 30  118     Q5_K 13.9 | 24  117
//	Q3_K 11.6 | 15  110     Q2_K 10.9 | 13  106     IQ4_NL 14.7 | 20 88
//	F16 (file's bytes)  from cache 40, 61
//
// Exact mode, 10⁹ weights per second and core from cache, one row | eight rows, the best
// of many runs on a busy machine where fast mode reached 41 to 59 | 46 to 73:
//
//	Q8_0 20.1 | 23.9   Q4_0 22.4 | 25.2   Q4_K 22.0 | 24.8   Q5_0 18.8 | 20.3
//	Q6_K 14.5 | 16.9   Q2_K 17.4 | 20.4   IQ4_NL 17.3 | 22.6
//
// Float products, which it had before, gave 8.0, 10.0 and 8.0 in Q8_0, Q4_0 and Q4_K from
// memory.
//
// Decoding is bound by memory for all but the 2- and 3-bit types.
//
// # Rows of logits
//
// Scan (k_scan.h) has the statistics of a row and the search for its best entries that
// plugins see, apart from any plan: the row may come from any backend. rowstats and
// plugins/sampling define them in Go; float32 lanes of fixed order, a power of two of its
// own and no fused product make every variant the same to the bit. Want.Stats has the same
// kernels. Statistics and the best 256 of 262,144 logits, one core, the best step of three
// runs beside other work that filled the machine: Go 2,246 µs, plain 1,242, AVX2 131.
//
// # Instruction sets
//
// variant_*.c compile the same kernels for each instruction set from simd.h, and
// pick.c picks at start: AVX-512 with VNNI, AVX2, NEON with and without dot
// products, and plain compiler vectors (SSE2) for what is left. AVX-512 without VNNI
// takes the AVX2 variant, for the fast kernels would gain nothing from it. The tests
// run every variant that the machine has. Whole-number sums are the same in all of
// them, exact mode is the same bits. NEON was run in an emulator only (./build.sh
// test-arm64), AVX-512 on Zen 5. Plain vectors are as wide as AVX-512's, so that every
// machine tests matrices whose last strip of rows is not full.
package cpu
