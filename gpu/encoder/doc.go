// Package encoder turns pictures and sound into rows that a text model reads in the
// place of token embeddings: it loads the encoder file beside a model (an mmproj GGUF),
// builds the plan of its towers and runs them on any ops.Backend.
//
// A family is one file: what it makes of a picture's size or a sound's length
// ([Encoder.Picture], [Encoder.Sound], in closed form, so that a request is counted
// before anything is computed), how it prepares the pixels, and its forward pass as
// operations. Between the rows of patches and the rows of tokens stands ops.Gather, so
// that a tower runs on its device from the first product to the last.
//
// A file is untrusted: sizes are bounded when it is read, and tensors must have the
// shapes the plan asks for. The package imports gpu/gguf, gpu/ops, gpu/pixel, gpu/mel and
// gpu/tensor; it knows no tokenizer and no text model but its width.
package encoder
