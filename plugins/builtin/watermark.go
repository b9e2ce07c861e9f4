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
	Z             float64 // standard deviations above chance: 4 is one text in 30,000
}

// Detect counts green tokens. A window and its token that come again are counted once,
// for a repetition says nothing new.
func (g GreenList) Detect(tokens []int32) Found {
	key := uint32(0)
	for _, c := range []byte(g.Key) {
		key = mix(key^uint32(c)) + golden
	}
	limit := uint32(g.Gamma * (1 << 32))
	seen := map[[2]uint32]bool{}
	var f Found
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
	if n := float64(f.Tokens); n > 0 {
		f.Z = (float64(f.Green) - g.Gamma*n) / math.Sqrt(n*g.Gamma*(1-g.Gamma))
	}
	return f
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
