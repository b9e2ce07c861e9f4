package compute

import (
	"encoding/binary"
	"fmt"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// formats are the layouts of the types that have kernels. What a plane of scales holds
// say the functions below; gpu/kernels/format_*.glsl read it.
var formats = map[tensor.Type]format{
	tensor.F32:    &floats{name: "f32", bytes: 4},
	tensor.F16:    &floats{name: "f16", bytes: 2},
	tensor.BF16:   &floats{name: "bf16", bytes: 2},
	tensor.Q4_0:   &packed{name: "q4_0", bits: 4, planes: []plane{perPair(2), perSuper(1)}, scales: halfScale},
	tensor.Q4_1:   &packed{name: "q4_1", bits: 4, planes: []plane{perPair(2), halfPair}, scales: halfAndMin},
	tensor.Q5_0:   &packed{name: "q5_0", bits: 5, offset: 16, planes: []plane{perPair(2), halfPair, perSuper(1)}, scales: halfScale},
	tensor.Q5_1:   &packed{name: "q5_1", bits: 5, planes: []plane{perPair(2), halfPair, halfPair}, scales: halfAndMin},
	tensor.Q8_0:   &packed{name: "q8_0", bits: 8, planes: []plane{perPair(4), perSuper(1)}, scales: halfScale},
	tensor.Q2_K:   &packed{name: "q2_k", bits: 2, planes: []plane{perPair(1), perSuper(1), perSuper(4)}, scales: scalesQ2K},
	tensor.Q3_K:   &packed{name: "q3_k", bits: 3, offset: 4, planes: []plane{perPair(1), halfPair, perSuper(1)}, scales: scalesQ3K},
	tensor.Q4_K:   &packed{name: "q4_k", bits: 4, planes: []plane{perPair(2), perSuper(1)}, scales: scalesQ4K},
	tensor.Q5_K:   &packed{name: "q5_k", bits: 5, planes: []plane{perPair(2), halfPair, perSuper(1)}, scales: scalesQ4K},
	tensor.Q6_K:   &packed{name: "q6_k", bits: 6, offset: 32, planes: []plane{perPair(2), perPair(1), perSuper(1), perSuper(8)}, scales: scalesQ6K},
	tensor.IQ4_NL: &packed{name: "iq4_nl", bits: 4, levels: &iq4Indices, planes: []plane{perPair(2), perSuper(1)}, scales: halfScale},
	tensor.IQ4_XS: &packed{name: "iq4_xs", bits: 4, levels: &iq4Indices, planes: []plane{perPair(2), perSuper(2)}, scales: scalesIQ4XS},
	tensor.MXFP4:  &packed{name: "mxfp4", bits: 4, levels: &e2m1Indices, planes: []plane{perPair(2), perSuper(2)}, scales: byteScale},
}

// codes is the layout of the types without kernels of their own: signed bytes and a
// float for each 16 of them.
var codes = &packed{name: "codes", bits: 8, planes: []plane{perPair(4), perPair(1)}}

// formatOf picks how a matrix lies on the device. A factor of an adapter is multiplied as
// floats whatever its type is.
func formatOf(w *ops.Weight, factor bool) (format, error) {
	if factor && w.Type.Group() > 0 {
		return widened, nil
	}
	if f, ok := formats[w.Type]; ok {
		return f, nil
	}
	if w.Type.Group() == 16 && !w.Type.HasMin() {
		return codes, nil
	}
	return nil, fmt.Errorf("type %v: %w", w.Type, ops.ErrUnsupported)
}

// iq4Indices and e2m1Indices give the number that stands for a level.
var (
	iq4Indices  = indices(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
	e2m1Indices = indices(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
)

func indices(levels ...int8) (of [256]byte) {
	for i := len(levels) - 1; i >= 0; i-- { // the first of equal ones
		of[uint8(levels[i])] = byte(i)
	}
	return of
}

// halfScale: word i of a super-block has the halves d of pair i.
func halfScale(t *tile, plane, block int, src []byte) { copy(t.half(plane, block), src[:2]) }

// halfAndMin: a word per block, d below and m above.
func halfAndMin(t *tile, plane, block int, src []byte) { copy(t.word(plane, block), src[:4]) }

// byteScale: a byte per block, E8M0.
func byteScale(t *tile, plane, block int, src []byte) {
	t.word(plane, block/4)[block%4] = src[0]
}

// scalesQ4K, of Q4_K and Q5_K: x has d below and dmin above, y the low four bits of the
// scales of the 8 blocks, z those of the minima, w the high two bits of the scales and
// then of the minima.
func scalesQ4K(t *tile, plane, super int, src []byte) {
	copy(t.word(plane, 4*super), src[:4])
	s := src[4:16]
	var y, z, w uint32
	for g := range 8 {
		sc, mn := s[g%4]&63, s[4+g%4]&63
		if g >= 4 {
			sc, mn = s[g+4]&15|s[g-4]>>6<<4, s[g+4]>>4|s[g]>>6<<4
		}
		y |= uint32(sc&15) << (4 * g)
		z |= uint32(mn&15) << (4 * g)
		w |= uint32(sc>>4)<<(2*g) | uint32(mn>>4)<<(16+2*g)
	}
	t.put(plane, 4*super+1, y)
	t.put(plane, 4*super+2, z)
	t.put(plane, 4*super+3, w)
}

// scalesQ6K: word i has the signed bytes of the four groups of pair i; the plane behind
// it the halves d.
func scalesQ6K(t *tile, plane, super int, src []byte) {
	for i := range 4 {
		copy(t.word(plane, 4*super+i), src[192+4*i:196+4*i])
	}
	copy(t.half(plane+1, super), src[208:210])
}

// scalesQ3K: x and y have the low four bits of the scales of the 16 groups, z their high
// two, w the half d.
func scalesQ3K(t *tile, plane, super int, src []byte) {
	s := src[96:108]
	var low [2]uint32
	var high uint32
	for g := range 16 {
		low[g/8] |= uint32(s[g%8]>>(4*(g/8))&15) << (4 * (g % 8))
		high |= uint32(s[8+g%4]>>(2*(g/4))&3) << (2 * g)
	}
	t.put(plane, 4*super, low[0])
	t.put(plane, 4*super+1, low[1])
	t.put(plane, 4*super+2, high)
	t.put(plane, 4*super+3, uint32(binary.LittleEndian.Uint16(src[108:])))
}

// scalesQ2K: x and y have the scales of the 16 groups, z and w their minima, four bits
// each; the plane behind it a word per super-block, d below and dmin above.
func scalesQ2K(t *tile, plane, super int, src []byte) {
	var v [4]uint32
	for g, b := range src[:16] {
		v[g/8] |= uint32(b&15) << (4 * (g % 8))
		v[2+g/8] |= uint32(b>>4) << (4 * (g % 8))
	}
	for i, w := range v {
		t.put(plane, 4*super+i, w)
	}
	copy(t.word(plane+1, super), src[80:84])
}

// scalesIQ4XS: two words per super-block, d and the high two bits of the scales of the 8
// blocks above it, and their low four bits.
func scalesIQ4XS(t *tile, plane, super int, src []byte) {
	copy(t.word(plane, 2*super), src[:4])
	copy(t.word(plane, 2*super+1), src[4:8])
}

// floats is the layout of weights without blocks: one plane, the columns of a row in
// their order, filled up to a multiple of 16.
type floats struct {
	name  string
	bytes int  // of a value
	widen bool // the weight's type is another one
}

// widened is the layout of any type as 32-bit floats.
var widened = &floats{name: "f32", bytes: 4, widen: true}

// Name is a part of the names of the kernels that read it.
func (f *floats) Name() string { return f.name }

// texels of a row.
func (f *floats) texels(cols int) int { return (cols + ops.Lanes - 1) / ops.Lanes * f.bytes }

// TileBytes is the size of a tile.
func (f *floats) TileBytes(cols int) int64 { return texel * tileRows * int64(f.texels(cols)) }

// Pack writes a tile.
func (f *floats) Pack(dst []byte, w *ops.Weight, row, n int) error {
	bytes := rowBytes(w)
	wide := make([]float32, w.Cols)
	for r := range n {
		src := w.Data[(row+r)*bytes : (row+r+1)*bytes]
		if f.widen {
			if err := tensor.Dequantize(w.Type, wide, src); err != nil {
				return err
			}
			src = appendFloats(nil, wide)
		}
		for k := 0; len(src) > 0; k++ {
			at := r/stripRows*stripRows*f.texels(w.Cols) + stripRows*k + r%stripRows
			src = src[copy(dst[texel*at:][:texel], src):]
		}
	}
	return nil
}
