//go:build race

package plugintest

const raced = true // the race detector makes rows of logits ten times slower
