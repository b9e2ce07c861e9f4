// Package rowstats says what the statistics of a row of logits are, to the last bit: the
// largest, mean and standard deviation, log-sum-exp and entropy that plugins see. Back ends
// compute them where the row lies, plugins/sampling where a plugin has changed it, and both
// by these definitions, so that nobody can tell who did. The Go code here is the plainest
// form of them; gpu/cpu has them in C (k_scan.h) and gpu/kernels as heads_stats.
//
// A row is taken in blocks of 1,024 logits. Within a block it is summed in 16 lanes,
// element i in lane i mod 16, in float32; no product is fused with a sum. From block to
// block a lane goes on as a pair of float32, the sum and what its additions rounded away
// ([Lanes]), which keeps some 40 bits without a float64, for devices have none. What is left
// then is a few dozen numbers; the rest is done in float64 by the host ([Describe]).
//
// Sums of logits are taken from a [Pivot] near their mean, so that the sum of squares loses
// nothing to the mean's own square. Weights are powers of two by a polynomial; those below
// 2^-100 of the largest count as none, which no result shows, and so no number here is
// subnormal where logits are not: devices may flush those.
//
// The package imports nothing of the project.
package rowstats
