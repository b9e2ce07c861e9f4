//go:build wasip1

// top-a: keeps the tokens whose probability is at least a times the square of the best
// one's: many where the model is unsure, few where it is sure.
package main

import "math"

var logA float32

func init() { Hooks = Plugin{Open: open, Logits: logits} }
func main() {}

func open() int32 {
	a := Number("/config/a", 0.2)
	if a <= 0 {
		return 1 // not interested
	}
	logA = float32(math.Log(a))
	return 0
}

func logits(f *Frame) int32 {
	l := f.Logits()
	if len(l) == 0 {
		return 0
	}
	best := l[0] - f.LogSumExp // log p
	least := f.LogSumExp + logA + 2*best
	keep := 1
	for keep < len(l) && l[keep] >= least {
		keep++
	}
	if keep == len(l) {
		return 0
	}
	f.CandN = uint32(keep)
	return Cands
}
