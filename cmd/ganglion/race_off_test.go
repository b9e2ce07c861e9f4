//go:build !race

package main

// raceEnabled tells that the test binary carries the race detector.
const raceEnabled = false
