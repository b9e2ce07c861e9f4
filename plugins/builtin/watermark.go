package builtin

import "math"

// GreenList finds the watermark of plugin green-list in tokens. Key, Gamma and Window are
// the plugin's settings.
type GreenList struct {
	Key    string
	Gamma  float64
	Window int
}

// Found is what the tokens of a text say about its origin.
type Found struct {
	Green, Tokens int     // distinct places that were looked at
	Z             float64 // standard deviations above chance
	P             float64 // probability that a text without the watermark has as many green tokens
}

// Share is the part of the tokens that is green; without the watermark it is about Gamma.
func (f Found) Share() float64 { return float64(f.Green) / float64(max(f.Tokens, 1)) }

// Detect counts the green tokens of texts, taken together. A window and its token that come
// again are counted once, for a repetition says nothing new. Tokens without a whole window
// before them in their text say nothing.
func (g GreenList) Detect(texts ...[]int32) Found {
	key := uint32(0)
	for _, c := range []byte(g.Key) {
		key = mix(key^uint32(c)) + golden
	}
	limit := uint32(g.Gamma * (1 << 32))
	seen := map[[2]uint32]bool{}
	f := Found{P: 1}
	for _, tokens := range texts {
		for i := g.Window; i < len(tokens); i++ {
			s := key
			for _, t := range tokens[i-g.Window : i] {
				s = mix(s^uint32(t)) + golden
			}
			place := [2]uint32{s | 1, uint32(tokens[i])}
			if seen[place] {
				continue
			}
			seen[place] = true
			f.Tokens++
			if draw(place[1], place[0]) < limit {
				f.Green++
			}
		}
	}
	if n := float64(f.Tokens); n > 0 {
		f.Z = (float64(f.Green) - g.Gamma*n) / math.Sqrt(n*g.Gamma*(1-g.Gamma))
		f.P = atLeast(f.Green, f.Tokens, g.Gamma)
	}
	return f
}

// atLeast is the probability of k or more hits in n tries of probability p: the tail of the
// binomial distribution, each term by its logarithm.
func atLeast(k, n int, p float64) (sum float64) {
	factorial := func(m int) float64 {
		l, _ := math.Lgamma(float64(m + 1))
		return l
	}
	for i := n; i >= k; i-- { // small terms first
		sum += math.Exp(factorial(n) - factorial(i) - factorial(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}

const golden = 0x9e3779b9 // 2³² divided by the golden ratio

// draw spreads the tokens of a step; src/green-list has the same.
func draw(id, seed uint32) uint32 {
	x := id*golden + seed
	x = (x ^ x>>16) * 0x7feb352d
	return x ^ x>>15
}

// mix is a bijection of 32 bits in which every bit depends on all (lowbias32 of Wellons'
// hash prospector); src/green-list has the same.
func mix(x uint32) uint32 {
	x = (x ^ x>>16) * 0x7feb352d
	x = (x ^ x>>15) * 0x846ca68b
	return x ^ x>>16
}
