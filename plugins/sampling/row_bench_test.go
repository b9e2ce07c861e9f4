package sampling

import "testing"

// BenchmarkRow is a whole row of 262,144 logits given to a plugin, and taken back.
func BenchmarkRow(b *testing.B) {
	const vocab = 262144
	row := make([]float32, vocab)
	for i := range row {
		row[i] = -float32(i*7919%vocab) / 1e4
	}
	var s Scratch
	bytes := make([]byte, 4*vocab)
	for name, do := range map[string]func(*Distribution) error{
		"copied":   func(d *Distribution) error { d.CopyTo(bytes, vocab); return nil },
		"replaced": func(d *Distribution) error { return d.Replace(bytes) },
	} {
		b.Run(name, func(b *testing.B) {
			d := s.load(&Input{Row: row})
			d.CopyTo(bytes, vocab)
			for b.Loop() {
				if err := do(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
