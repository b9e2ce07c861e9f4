package picture

import (
	"context"
	"runtime"
	"sync"
)

// What each value of chroma adds to red, green and blue, in libjpeg's tables: those of
// green keep 16 fractional bits.
var crRed, cbBlue, crGreen, cbGreen = func() (r, b, cr, cb [256]int32) {
	const half = 1 << 15
	for i := range r {
		x := int32(i) - 128
		r[i] = (91881*x + half) >> 16  // 1.40200
		b[i] = (116130*x + half) >> 16 // 1.77200
		cr[i] = -46802 * x             // 0.71414
		cb[i] = -22554*x + half        // 0.34414
	}
	return
}()

// jpegModel is what the components mean.
type jpegModel int

const (
	gray jpegModel = iota
	ycc
	rgb
	cmyk
	ycck
)

// model follows libjpeg's default_decompress_parms.
func (f *jpegFile) model() jpegModel {
	ids := [4]int{}
	for i := range f.parts { // a copy of a part would read what the reader of codes writes
		ids[i] = f.parts[i].id
	}
	switch {
	case len(f.parts) == 1:
		return gray
	case len(f.parts) == 4 && f.adobe == 2:
		return ycck
	case len(f.parts) == 4:
		return cmyk
	case f.jfif:
		return ycc
	case f.adobe == 0, f.adobe < 0 && ids == [4]int{'R', 'G', 'B'}:
		return rgb
	}
	return ycc
}

// convert makes the rows from up to until of the picture.
func (f *jpegFile) convert(from, until int) {
	model := f.model()
	var scratch [4][]uint8
	var s [4][]uint8
	for y := from; y < until; y++ {
		for i := range f.parts {
			p := &f.parts[i]
			if p.h == f.hMax && p.v == f.vMax {
				s[i] = p.row(y)
				continue
			}
			if scratch[i] == nil {
				scratch[i] = make([]uint8, p.w*(f.hMax/p.h)+1)
			}
			p.upsample(scratch[i], y, f.hMax/p.h, f.vMax/p.v)
			s[i] = scratch[i]
		}
		dst := f.out.Pix[3*f.w*y : 3*f.w*(y+1)]
		switch model {
		case gray:
			for x, v := range s[0][:f.w] {
				d := dst[3*x:][:3]
				d[0], d[1], d[2] = v, v, v
			}
		case ycc:
			fromYCC(dst, s[0], s[1], s[2])
		case rgb:
			for x := range f.w {
				d := dst[3*x:][:3]
				d[0], d[1], d[2] = s[0][x], s[1][x], s[2][x]
			}
		case cmyk:
			for x := range f.w {
				// Files hold inverted ink, as Adobe's do: the value is what is left of the light.
				under(dst[3*x:][:3], s[0][x], s[1][x], s[2][x], s[3][x])
			}
		case ycck:
			fromYCC(dst, s[0], s[1], s[2])
			for x := range f.w {
				d := dst[3*x:][:3]
				under(d, 255-d[0], 255-d[1], 255-d[2], s[3][x])
			}
		}
	}
}

// under is Pillow's conversion of CMYK, here of inverted ink: c·k/255 of each light,
// as k less the part that ink takes.
func under(d []uint8, c, m, y, k uint8) {
	for i, v := range [3]uint8{c, m, y} {
		ink := uint32(255-v)*uint32(k) + 128
		d[i] = clampByte(int32(k) - int32((ink>>8+ink)>>8))
	}
}

func fromYCC(dst, luma, cb, cr []uint8) {
	n := len(dst) / 3
	luma, cb, cr = luma[:n], cb[:n], cr[:n]
	for x, v := range luma {
		y, b, r := int32(v), cb[x], cr[x]
		d := dst[3*x:][:3]
		d[0] = clampByte(y + crRed[r])
		d[1] = clampByte(y + (cbGreen[b]+crGreen[r])>>16)
		d[2] = clampByte(y + cbBlue[b])
	}
}

// row is row y of the samples that count.
func (p *jpegPart) row(y int) []uint8 {
	y = min(max(y, 0), p.rows-1)
	return p.plane[y*p.stride:][:p.stride]
}

// upsample makes row y at full size of a plane that is h times narrower and v times
// lower (jdsample.c): halves are interpolated, other fractions repeated.
func (p *jpegPart) upsample(dst []uint8, y, h, v int) {
	near := p.row(y / v)[:p.w]
	far := near
	if v == 2 {
		far = p.row(y/2 - 1 + 2*(y%2))[:p.w]
	}
	switch {
	case h == 2 && v == 2 && p.w > 2:
		upsampleBoth(dst, near, far)
	case h == 2 && v == 1 && p.w > 2:
		upsampleAcross(dst, near)
	case h == 1 && v == 2:
		bias := 1 + y%2
		for i, a := range near {
			dst[i] = uint8((3*int(a) + int(far[i]) + bias) >> 2)
		}
	default:
		for i, a := range near {
			for j := range h {
				dst[i*h+j] = a
			}
		}
	}
}

func upsampleAcross(dst, src []uint8) {
	n := len(src)
	dst = dst[:2*n]
	dst[0], dst[1] = src[0], uint8((3*int(src[0])+int(src[1])+2)>>2)
	for i := 1; i < n-1; i++ {
		v := 3 * int(src[i])
		dst[2*i] = uint8((v + int(src[i-1]) + 1) >> 2)
		dst[2*i+1] = uint8((v + int(src[i+1]) + 2) >> 2)
	}
	dst[2*n-2], dst[2*n-1] = uint8((3*int(src[n-1])+int(src[n-2])+1)>>2), src[n-1]
}

func upsampleBoth(dst, near, far []uint8) {
	n := len(near)
	dst, far = dst[:2*n], far[:n]
	at := 3*int(near[0]) + int(far[0])
	dst[0] = uint8((4*at + 8) >> 4)
	for i := 1; i < n; i++ {
		next := 3*int(near[i]) + int(far[i])
		d := dst[2*i-1:][:2]
		d[0] = uint8((3*at + next + 7) >> 4)
		d[1] = uint8((3*next + at + 8) >> 4)
		at = next
	}
	dst[2*n-1] = uint8((4*at + 7) >> 4)
}

// inBands calls f for each of n bands on up to two goroutines, until ctx ends.
func inBands(ctx context.Context, n int, f func(band int)) error {
	part := func(from, until int) {
		for i := from; i < until && ctx.Err() == nil; i++ {
			f(i)
		}
	}
	if n < 8 || runtime.GOMAXPROCS(0) < 2 {
		part(0, n)
		return ctx.Err()
	}
	var wait sync.WaitGroup
	wait.Go(func() { part(n/2, n) })
	part(0, n/2)
	wait.Wait()
	return ctx.Err()
}
