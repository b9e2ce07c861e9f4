package pixel

import (
	"fmt"
	"ganglion/gpu/cputime"
	"testing"
)

func BenchmarkResize(b *testing.B) {
	m := pattern(0, 4000, 3000)
	for _, f := range []Filter{Bilinear, Bicubic, Lanczos} {
		b.Run(fmt.Sprintf("12MP/896x672/%v", f), func(b *testing.B) {
			before := cputime.Used()
			for b.Loop() {
				Resize(m, 896, 672, f)
			}
			b.ReportMetric(float64((cputime.Used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
