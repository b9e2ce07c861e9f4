// Package film turns moving pictures into a few frames, and their sound tracks into
// samples.
//
// What a file holds (size, length, codecs) is read from its headers (Describe), and
// from that alone follows which frames a model sees (Sampling.Plan): the number of
// frames, and with it the tokens of a request, is known before any decoder runs.
//
// Animated GIF, WebP and APNG and Motion-JPEG (AVI, QuickTime, raw) are decoded here.
// H.264, HEVC, VP8, VP9, AV1 and whatever else MP4, QuickTime, Matroska, WebM and AVI
// hold goes through ffmpeg, compiled to WebAssembly, in a child process (Engine): no
// network, no files but the one at hand (in memory, read only), bounded memory and
// time. The module is data, GPL-3, and in the program only where it is built with the
// tag ffmpeg (build.sh does); without it Engine answers ErrNoDecoder.
//
// The package imports appliance/media/picture and gpu/pixel.
package film
