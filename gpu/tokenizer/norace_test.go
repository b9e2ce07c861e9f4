//go:build !race

package tokenizer

// raceEnabled tells that the race detector slows everything down.
const raceEnabled = false
