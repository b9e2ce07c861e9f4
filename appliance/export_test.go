package appliance

// DefaultRand draws seeds where a Config names nothing else.
func DefaultRand() uint64 { return Config{}.withDefaults().Rand() }

// Decoding is how many items are in memory decoded.
func Decoding() int { return len(decoding) }
