//go:build race

package model

// faultStep takes every so-manieth architecture through the fault tables under the
// race detector, which slows them tenfold and has no goroutines to watch there.
const faultStep = 12
