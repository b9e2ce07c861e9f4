//go:build race

package engine_test

// metamorphicDraws is small under the race detector, which slows the test tenfold.
const metamorphicDraws = 40
