package sampling

// The constants of Philox4x32 (Salmon et al., table 2 and section 4.2).
const (
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	philoxW0     = 0x9E3779B9 // golden ratio
	philoxW1     = 0xBB67AE85 // sqrt(3) − 1
	philoxRounds = 10
)

// philox returns four random words for a counter and a key: a pure function.
func philox(c [4]uint32, key [2]uint32) [4]uint32 {
	for range philoxRounds {
		p0 := uint64(philoxM0) * uint64(c[0])
		p1 := uint64(philoxM1) * uint64(c[2])
		c = [4]uint32{
			uint32(p1>>32) ^ c[1] ^ key[0], uint32(p1),
			uint32(p0>>32) ^ c[3] ^ key[1], uint32(p0),
		}
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return c
}

// uniform returns the number in [0, 1) that belongs to a seed and a position, a
// multiple of 2^-53. The counter's words are (sequence, position, hook, draw); the
// built-in draw is hook 0 of sequence 0 and draws once.
func uniform(seed int64, position int) float64 {
	s := uint64(seed)
	w := philox([4]uint32{1: uint32(position)}, [2]uint32{uint32(s), uint32(s >> 32)})
	return float64(uint64(w[0])<<21|uint64(w[1])>>11) / (1 << 53)
}
