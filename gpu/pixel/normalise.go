package pixel

// Normalise writes (v/255 - mean) / std of each sample into dst, one plane of H rows
// after the other in the order R, G, B. dst: [3, H, W]
func Normalise(dst []float32, m Image, mean, std [3]float32) {
	n := m.W * m.H
	dst = dst[:3*n]
	for c := range 3 {
		var of [256]float32 // a sample has few values
		for v := range of {
			of[v] = (float32(float32(v)/255) - mean[c]) / std[c]
		}
		plane := dst[c*n:][:n]
		for i := range plane {
			plane[i] = of[m.Pix[3*i+c]]
		}
	}
}
