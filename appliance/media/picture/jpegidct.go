package picture

// Constants of the transform after Loeffler, Ligtenberg and Moschytz in 13 fractional
// bits, as in libjpeg's jidctint.c.
const (
	fix0298 = 2446
	fix0390 = 3196
	fix0541 = 4433
	fix0765 = 6270
	fix0899 = 7373
	fix1175 = 9633
	fix1501 = 12299
	fix1847 = 15137
	fix1961 = 16069
	fix2053 = 16819
	fix2562 = 20995
	fix3072 = 25172

	constBits = 13
	passBits  = 2 // kept between the passes
)

// inverse turns coefficients into 8×8 samples. last is the index of the last
// coefficient that is not zero, 0 where there is none but the mean.
func inverse(b *block, last int, dst []uint8, stride int) {
	if last == 0 {
		v := clampByte((int32(b[0])<<passBits+1<<(passBits+2))>>(passBits+3) + 128)
		for range 8 {
			d := dst[:8]
			for i := range d {
				d[i] = v
			}
			dst = dst[min(stride, len(dst)):]
		}
		return
	}
	var w [64]int32
	for i := range 8 {
		if b[8+i]|b[16+i]|b[24+i]|b[32+i]|b[40+i]|b[48+i]|b[56+i] == 0 {
			v := int32(b[i]) << passBits
			w[i], w[8+i], w[16+i], w[24+i], w[32+i], w[40+i], w[48+i], w[56+i] = v, v, v, v, v, v, v, v
			continue
		}
		const shift, half = constBits - passBits, 1 << (constBits - passBits - 1)
		a0, a1, a2, a3, o0, o1, o2, o3 := butterfly(int32(b[i]), int32(b[8+i]), int32(b[16+i]), int32(b[24+i]),
			int32(b[32+i]), int32(b[40+i]), int32(b[48+i]), int32(b[56+i]))
		w[i], w[56+i] = (a0+o3+half)>>shift, (a0-o3+half)>>shift
		w[8+i], w[48+i] = (a1+o2+half)>>shift, (a1-o2+half)>>shift
		w[16+i], w[40+i] = (a2+o1+half)>>shift, (a2-o1+half)>>shift
		w[24+i], w[32+i] = (a3+o0+half)>>shift, (a3-o0+half)>>shift
	}
	for i := 0; i < 64; i += 8 {
		const shift = constBits + passBits + 3
		const half = 1<<(shift-1) + 128<<shift
		a0, a1, a2, a3, o0, o1, o2, o3 := butterfly(w[i], w[i+1], w[i+2], w[i+3], w[i+4], w[i+5], w[i+6], w[i+7])
		d := dst[:8]
		d[0], d[7] = clampByte((a0+o3+half)>>shift), clampByte((a0-o3+half)>>shift)
		d[1], d[6] = clampByte((a1+o2+half)>>shift), clampByte((a1-o2+half)>>shift)
		d[2], d[5] = clampByte((a2+o1+half)>>shift), clampByte((a2-o1+half)>>shift)
		d[3], d[4] = clampByte((a3+o0+half)>>shift), clampByte((a3-o0+half)>>shift)
		dst = dst[min(stride, len(dst)):]
	}
}

// butterfly is one transform of eight: sums of the even part and of the odd part.
func butterfly(i0, i1, i2, i3, i4, i5, i6, i7 int32) (a0, a1, a2, a3, o0, o1, o2, o3 int32) {
	z1 := (i2 + i6) * fix0541
	t2, t3 := z1-i6*fix1847, z1+i2*fix0765
	t0, t1 := (i0+i4)<<constBits, (i0-i4)<<constBits
	a0, a3, a1, a2 = t0+t3, t0-t3, t1+t2, t1-t2

	y1, y2, y3, y4 := i7+i1, i5+i3, i7+i3, i5+i1
	y5 := (y3 + y4) * fix1175
	y1, y2 = -y1*fix0899, -y2*fix2562
	y3, y4 = y5-y3*fix1961, y5-y4*fix0390
	o0 = i7*fix0298 + y1 + y3
	o1 = i5*fix2053 + y2 + y4
	o2 = i3*fix3072 + y2 + y3
	o3 = i1*fix1501 + y1 + y4
	return
}

func clampByte(v int32) uint8 {
	if uint32(v) > 255 {
		return uint8(^(v >> 31)) // 0 below, 255 above
	}
	return uint8(v)
}
