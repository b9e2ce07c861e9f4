//go:build race

package encoder_test

// raceEnabled leaves the long sounds to runs without the race detector: a piece of 30 s
// takes the reference minutes with it, and its code is that of the pictures.
const raceEnabled = true
