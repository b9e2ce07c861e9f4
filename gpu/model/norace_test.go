//go:build !race

package model

const faultStep = 1
