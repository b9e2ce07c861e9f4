package sampling

import "testing"

// TestPhiloxKnownAnswers holds the known answers published with Random123 (kat_vectors,
// philox4x32 with 10 rounds).
func TestPhiloxKnownAnswers(t *testing.T) {
	const all = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestUniform(t *testing.T) {
	seen := map[float64]bool{}
	sum := 0.0
	const n = 20000
	for i := range n {
		u := uniform(int64(i%100)-50, i/100)
		if u < 0 || u >= 1 || seen[u] {
			t.Fatalf("seed %d, position %d: %g", i%100-50, i/100, u)
		}
		seen[u] = true
		sum += u
	}
	if mean := sum / n; mean < 0.49 || mean > 0.51 { // five standard deviations
		t.Errorf("mean %g, want about 0.5", mean)
	}
	if uniform(1, 2) == uniform(2, 1) || uniform(1<<32, 0) == uniform(1, 0) {
		t.Error("seed and position are mixed up")
	}
}
