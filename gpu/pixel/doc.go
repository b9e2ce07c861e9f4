// Package pixel brings pictures to the sizes and numbers that encoders want.
//
// It owns the RGB picture of 8 bits that decoders hand over and everything
// between it and a tower's first layer: resizing, fitting onto a canvas, the
// sizes that families of models ask for, normalisation into float32 planes.
//
// Resizing gives the bytes that Pillow gives (libImaging/Resample.c: a
// horizontal and a vertical pass, weights of 22 fractional bits, 8 bits between
// the passes), because models are trained on its output. Sizes are computed in
// the float32 arithmetic of the reference, so that a picture whose side falls on
// a boundary gets the same number of tokens.
//
// Everything here is a pure function of its arguments and safe for concurrent
// use. A large picture is resized on up to two goroutines. The package imports
// nothing of this module.
package pixel
