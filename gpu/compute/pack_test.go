package compute

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// What kernels do with a packed matrix, once more in Go: unpack reads a row of a tile.
type unpacker struct {
	tile   []byte
	planes []int
	row    int
}

func (u *unpacker) word(plane, w int) uint32 {
	at := u.row/8*u.planes[len(u.planes)-1] + u.planes[plane] + 8*(w/4) + u.row%8
	return binary.LittleEndian.Uint32(u.tile[16*at+4*(w%4):])
}

func (u *unpacker) half(plane, i int) float32 {
	return tensor.F16ToF32(uint16(u.word(plane, i/2) >> (16 * (i % 2))))
}

func (u *unpacker) bits(plane, n, i int) int {
	return int(u.word(plane, i*n/32) >> (i * n % 32) & (1<<n - 1))
}

// number is what is stored for a column.
func (u *unpacker) number(bits, col int) int {
	k, quad := col%4, col/4
	switch bits {
	case 8:
		return int(u.word(0, quad) >> (8 * k) & 255)
	case 2:
		return int(u.word(0, quad/4) >> (8*k + 2*(quad%4)) & 3)
	case 3:
		return u.number(2, col) | int(u.word(1, quad/8)>>(8*k+quad%8)&1)<<2
	case 5:
		return u.number(4, col) | int(u.word(1, quad/8)>>(8*k+quad%8)&1)<<4
	case 6:
		return u.number(4, col) | int(u.word(1, quad/4)>>(8*k+2*(quad%4))&3)<<4
	}
	return int(u.word(0, quad/2) >> (8*k + 4*(quad%2)) & 15)
}

// scale gives the scale and the minimum of a group.
func (u *unpacker) scale(t tensor.Type, g int) (d, m float32) {
	switch t {
	case tensor.Q4_0, tensor.Q8_0, tensor.IQ4_NL:
		return u.half(1, g), 0
	case tensor.Q5_0:
		return u.half(2, g), 0
	case tensor.Q4_1:
		return u.half(1, 2*g), u.half(1, 2*g+1)
	case tensor.Q5_1:
		return u.half(2, 2*g), u.half(2, 2*g+1)
	case tensor.MXFP4:
		return float32(math.Ldexp(1, u.bits(1, 8, g)-128)), 0
	case tensor.Q4_K:
		return u.scaleK(1, g)
	case tensor.Q5_K:
		return u.scaleK(2, g)
	case tensor.Q6_K:
		return u.half(3, g/16) * float32(int8(u.bits(2, 8, g))), 0
	case tensor.Q3_K:
		s := g / 16
		sc := u.bits(2, 4, 32*s+g%16) | u.bits(2, 2, 64*s+32+g%16)<<4
		return u.half(2, 8*s+6) * float32(sc-32), 0
	case tensor.Q2_K:
		s := g / 16
		return u.half(2, 2*s) * float32(u.bits(1, 4, 32*s+g%16)), -(u.half(2, 2*s+1) * float32(u.bits(1, 4, 32*s+16+g%16)))
	case tensor.IQ4_XS:
		s := g / 8
		sc := u.bits(1, 4, 16*s+8+g%8) | u.bits(1, 2, 32*s+8+g%8)<<4
		return u.half(1, 4*s) * float32(sc-32), 0
	}
	return math.Float32frombits(u.word(1, g)), 0 // codes
}

func (u *unpacker) scaleK(plane, g int) (d, m float32) {
	s, i := g/8, g%8
	six := func(low, high int) float32 {
		return float32(u.bits(plane, 4, 32*s+low+i) | u.bits(plane, 2, 64*s+high+i)<<4)
	}
	return u.half(plane, 8*s) * six(8, 48), -(u.half(plane, 8*s+1) * six(16, 56))
}

// blocks makes rows of a type out of any bits; halves that scale are finite.
func blocks(r *rand.Rand, t tensor.Type, cols, rows int) *ops.Weight {
	w := &ops.Weight{Name: t.String(), Type: t, Cols: cols, Rows: rows, Experts: 1}
	size, _ := tensor.RowBytes(t, cols)
	w.Data = make([]byte, rows*size)
	v := make([]float32, cols)
	for row := range rows {
		data := w.Data[row*size : (row+1)*size]
		for {
			for i := range data {
				data[i] = byte(r.UintN(256))
			}
			if t == tensor.MXFP4 { // no subnormal scales
				for i := 0; i < len(data); i += t.BlockBytes() {
					data[i] = byte(2 + r.UintN(250))
				}
			}
			limit(data, t)
			if tensor.Dequantize(t, v, data) == nil && finite(v) {
				break
			}
		}
	}
	return w
}

// limit clears the highest bit of the exponents of all halves that can be scales, so
// that drawing again ends soon.
func limit(data []byte, t tensor.Type) {
	at := map[tensor.Type][]int{
		tensor.F16: {0}, tensor.Q4_0: {0}, tensor.Q4_1: {0, 2}, tensor.Q5_0: {0}, tensor.Q5_1: {0, 2}, tensor.Q8_0: {0},
		tensor.Q2_K: {80, 82}, tensor.Q3_K: {108}, tensor.Q4_K: {0, 2}, tensor.Q5_K: {0, 2}, tensor.Q6_K: {208},
		tensor.IQ4_NL: {0}, tensor.IQ4_XS: {0}, tensor.IQ2_XXS: {0}, tensor.IQ2_XS: {0}, tensor.IQ2_S: {0}, tensor.IQ3_XXS: {0},
		tensor.IQ3_S: {0}, tensor.IQ1_S: {0}, tensor.IQ1_M: {55}, tensor.TQ1_0: {52}, tensor.TQ2_0: {64},
	}[t]
	for i := 0; i < len(data); i += t.BlockBytes() {
		for _, k := range at {
			if t == tensor.IQ1_M {
				data[i+k] &^= 0x40
			} else {
				data[i+k+1] &^= 0x40
			}
		}
		if t == tensor.F32 || t == tensor.BF16 {
			data[i+t.BlockBytes()-1] &^= 0x40
		}
	}
}

func finite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return true
}

// Every type comes back from its tiles to the bit: numbers, scales and minima.
func TestPackKeepsWeights(t *testing.T) {
	for _, typ := range tensor.Types() {
		t.Run(typ.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(typ)))
			for _, units := range []int{1, 3, 10} {
				cols := units * max(typ.BlockSize(), 32)
				w := blocks(r, typ, cols, 2*tileRows-5)
				for _, part := range [][2]int{{0, tileRows}, {tileRows, tileRows - 5}} {
					if err := packedAs(w, part[0], part[1]); err != "" {
						t.Errorf("%d columns, rows from %d: %s", cols, part[0], err)
					}
				}
			}
		})
	}
}

// packedAs packs a tile and says what does not come back.
func packedAs(w *ops.Weight, first, rows int) string {
	f, err := formatOf(w, false)
	if err != nil {
		return err.Error()
	}
	dst := make([]byte, f.TileBytes(w.Cols))
	if err := f.Pack(dst, w, first, rows); err != nil {
		return err.Error()
	}
	return compare(f, dst, w, first, rows)
}

func compare(f format, dst []byte, w *ops.Weight, first, rows int) string {
	size := rowBytes(w)
	for r := range rows {
		src := w.Data[(first+r)*size : (first+r+1)*size]
		if fl, ok := f.(*floats); ok {
			for i, b := range src {
				if dst[16*(r/8*8*fl.texels(w.Cols)+8*(i/16)+r%8)+i%16] != b {
					return "a byte of " + fl.name
				}
			}
			continue
		}
		if s := compareCodes(f.(*packed), dst, w, r, src); s != "" {
			return s
		}
	}
	return ""
}

func compareCodes(p *packed, dst []byte, w *ops.Weight, r int, src []byte) string {
	g := w.Type.Group()
	codes, scales, mins := make([]int8, w.Cols), make([]float32, w.Cols/g), make([]float32, w.Cols/g)
	if err := tensor.Codes(w.Type, codes, scales, mins, src); err != nil {
		return err.Error()
	}
	u := unpacker{tile: dst, planes: p.offsets(w.Cols), row: r}
	for i, q := range codes {
		if got := u.number(p.bits, i); got != int(p.stored(q))&(1<<p.bits-1) {
			return "a code"
		}
	}
	for i := range scales {
		d, m := u.scale(w.Type, i)
		if math.Float32bits(d) != math.Float32bits(scales[i]) || (w.Type.HasMin() && math.Float32bits(m) != math.Float32bits(mins[i])) {
			return "a scale"
		}
	}
	return ""
}

// The comparison can fail: each changed bit of a tile that belongs to a row is seen, or
// is none of those that are filled up.
func TestPackComparisonFails(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := blocks(r, tensor.Q4_K, 256, tileRows)
	f := formats[tensor.Q4_K]
	dst := make([]byte, f.TileBytes(w.Cols))
	if err := f.Pack(dst, w, 0, tileRows); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		at, bit := r.IntN(len(dst)), byte(1)<<r.IntN(8)
		dst[at] ^= bit
		if compare(f, dst, w, 0, tileRows) == "" {
			t.Fatalf("bit %#x of byte %d changed and nothing was seen", bit, at)
		}
		dst[at] ^= bit
	}
}

// A packed matrix of usual width is no more than 1.05 times what it is in the file,
// where its type has a kernel of its own.
func TestPackedSize(t *testing.T) {
	for typ, f := range formats {
		for _, cols := range []int{640, 1024, 2048, 4096} {
			if cols%typ.BlockSize() != 0 {
				continue
			}
			file, _ := tensor.RowBytes(typ, cols)
			if got := float64(f.TileBytes(cols)) / float64(tileRows*file); got > 1.05 {
				t.Errorf("%v, %d columns: %.3f times the file's bytes", typ, cols, got)
			}
		}
	}
}
