// Package sampling turns the logits of one step into a token.
//
// The order of a [Chain] is fixed and the same everywhere:
//
//	logits → suppressed tokens → logit_bias → presence and frequency penalties
//	(generated tokens only) → further stages → temperature → top_k → top_p →
//	min_p → draw
//
// A [Stage] has one method and edits a [Distribution]. Stages that are not built in
// ([Params].Plugins) stand at three places: before logit_bias, before the temperature,
// which they may change, and in place of the draw. What is out of a distribution never
// comes back into it. A filter (top_k, top_p, min_p) never sorts
// the vocabulary: it raises the floor of the distribution, the last candidate that
// stays in the order "larger logit first, ties to the lower id". One pass over the
// logits puts them into narrow buckets ([Distribution] keeps a histogram); the
// filters and the draw then look at the members of one bucket.
//
// The draw is made by Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As
// Easy as 1, 2, 3", SC 2011), keyed by the seed, with the position as its counter:
// the number at a position depends on nothing but these two, so an answer can be
// replayed from any point.
//
// Every number is made of IEEE additions, multiplications, divisions and square
// roots that the compiler may not fuse, the exponential included (exp.go), so a
// draw is the same on every machine. A token is drawn with its exact probability
// up to a relative error of 1e-5, about what the rounding of its logit to float32
// costs; tokens whose weight is below 2^-64 of the heaviest one are never drawn.
//
// A chain says what it needs of the logits ([Chain.Needs]): the best token, the
// best K, these and the statistics of the row, or the row; the caller reads back no more. It allocates nothing
// per token once its buffers have grown.
//
// Statistics of a row are those of [ganglion/plugins/rowstats], nothing else of the project is
// imported.
package sampling
