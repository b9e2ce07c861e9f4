//go:build !race

package engine_test

const metamorphicDraws = 1000
