//go:build !race

package plugintest

const raced = false
