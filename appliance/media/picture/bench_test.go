package picture

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"testing"

	"ganglion/gpu/cputime"
	"ganglion/gpu/pixel"
)

// large is a picture of 12 megapixels with slopes, edges and noise of a camera, in
// 4:2:0.
func large() *image.YCbCr {
	m := image.NewYCbCr(image.Rect(0, 0, 4000, 3000), image.YCbCrSubsampleRatio420)
	s := uint32(1)
	for y := range 3000 {
		for x := range 4000 {
			s = s*1664525 + 1013904223
			m.Y[y*m.YStride+x] = uint8(128 + 60*math.Sin(float64(x)/37)*math.Cos(float64(y)/23) + 30*float64(x/50&1) + float64(s>>28))
		}
	}
	for i := range m.Cb {
		m.Cb[i], m.Cr[i] = uint8(i/100), uint8(i/333)
	}
	return m
}

// BenchmarkToModel is the way from a file of 12 megapixels to the size that a model
// wants.
func BenchmarkToModel(b *testing.B) {
	var asJPEG, asPNG bytes.Buffer
	m := large()
	if err := jpeg.Encode(&asJPEG, m, &jpeg.Options{Quality: 85}); err != nil {
		b.Fatal(err)
	}
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&asPNG, m); err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name string
		data []byte
	}{{"JPEG", asJPEG.Bytes()}, {"PNG", asPNG.Bytes()}} {
		b.Run("12MP/"+bb.name+"/896x896", func(b *testing.B) {
			b.SetBytes(int64(len(bb.data)))
			before := cputime.Used()
			for b.Loop() {
				m, err := Decode(context.Background(), bb.data, Options{})
				if err != nil {
					b.Fatal(err)
				}
				pixel.Fit(m, 896, 896, pixel.Bilinear)
			}
			b.ReportMetric(float64((cputime.Used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
