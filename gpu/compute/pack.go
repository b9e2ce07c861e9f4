package compute

import (
	"encoding/binary"
	"fmt"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// How matrices lie on the device. A tile is 32 weight rows, one per invocation of a
// kernel, in four strips of 8 rows, one behind the other. A strip consists of planes; a
// plane is texels of 16 bytes, those of the 8 rows beside each other, so that texel k of
// row r is texel 8·k + r of the plane: neighbouring invocations read 128 bytes that stand
// together, a line of most caches, and each strip is read from its begin to its end. (With
// the texels of all 32 rows beside each other a software renderer, which runs 8 rows after
// another, waited for memory half of the time.) Columns come in pairs of blocks of 32; what
// a matrix lacks of the last pair is zero. Four pairs, 256 columns, are a super-block.
//
// Codes of 4 bits and less stand so that a kernel gets four columns (a quad) as the
// bytes of one word by a shift and a mask:
//
//	8 bits  word i of a pair: quad i, column k in byte k                    4 texels a pair
//	4 bits  word w: byte k is column k of quad 2w, and of quad 2w+1 above   2 texels a pair
//	2 bits  word w: byte k has column k of quads 4w…4w+3, lowest first      1 texel a pair
//	1 bit   word w: byte k has column k of quads 8w…8w+7, lowest first      ½ texel a pair
//
// The scales of a format are as small as in the file; see pack_formats.go.

const (
	texel       = 16
	stripRows   = 8
	pairCols    = 2 * ops.WholeBlock
	superPairs  = 4
	superBlocks = 8
)

// plane is a kind of plane: what it needs for a row of so many pairs of blocks.
type plane func(pairs int) (texels int)

func perPair(n int) plane { return func(pairs int) int { return n * pairs } }

func halfPair(pairs int) int { return (pairs + 1) / 2 }

// perSuper is a plane in which a texel serves n super-blocks.
func perSuper(n int) plane {
	return func(pairs int) int { return (pairs + superPairs*n - 1) / (superPairs * n) }
}

// packed is the layout of one type of block format.
type packed struct {
	name string
	bits int // of a code: 8, or 4, 5, 6, 2, 3, of which the lowest 4 or 2 are in the first plane
	// offset is what a code is less than the number that is stored; levels has the number
	// of each code where that is no difference.
	offset int8
	levels *[256]byte
	// planes are those of the codes and then those of the scales.
	planes []plane
	scales func(t *tile, plane, block int, src []byte) // packs the scales of one block of the file
}

// Name is a part of the names of the kernels that read it.
func (p *packed) Name() string { return p.name }

// offsets gives where each plane of a strip begins and where the strip ends, in texels.
func (p *packed) offsets(cols int) []int {
	pairs := (cols + pairCols - 1) / pairCols
	at := []int{0}
	for _, n := range p.planes {
		at = append(at, at[len(at)-1]+stripRows*n(pairs))
	}
	return at
}

// TileBytes is the size of a tile.
func (p *packed) TileBytes(cols int) int64 {
	at := p.offsets(cols)
	return texel * tileRows / stripRows * int64(at[len(at)-1])
}

// tile is a tile that is being packed.
type tile struct {
	dst    []byte
	planes []int // where they begin in a strip and where that ends, in texels
	row    int
}

// word is word w of the row in a plane.
func (t *tile) word(plane, w int) []byte {
	strip := t.row / stripRows * t.planes[len(t.planes)-1]
	at := texel*(strip+t.planes[plane]+stripRows*(w/4)+t.row%stripRows) + 4*(w%4)
	return t.dst[at : at+4 : at+4]
}

// half is half i of the row in a plane.
func (t *tile) half(plane, i int) []byte { return t.word(plane, i/2)[2*(i%2):] }

func (t *tile) put(plane, w int, v uint32) { binary.LittleEndian.PutUint32(t.word(plane, w), v) }

// scalePlane is the first plane of scales.
func (p *packed) scalePlane() int {
	if p.bits == 5 || p.bits == 6 || p.bits == 3 {
		return 2
	}
	return 1
}

// Pack writes a tile.
func (p *packed) Pack(dst []byte, w *ops.Weight, row, n int) error {
	bytes := rowBytes(w)
	group := w.Type.Group()
	if group == 0 {
		return fmt.Errorf("type %v has no codes", w.Type)
	}
	codes, scales, mins := make([]int8, w.Cols), make([]float32, w.Cols/group), make([]float32, w.Cols/group)
	t := tile{dst: dst, planes: p.offsets(w.Cols)}
	for r := range n {
		src := w.Data[(row+r)*bytes : (row+r+1)*bytes]
		if err := tensor.Codes(w.Type, codes, scales, mins, src); err != nil {
			return err
		}
		t.row = r
		p.packCodes(&t, codes)
		if p.scales == nil {
			packFloats(&t, scales)
			continue
		}
		for b, size := 0, w.Type.BlockBytes(); b*size < bytes; b++ {
			p.scales(&t, p.scalePlane(), b, src[b*size:(b+1)*size])
		}
	}
	return nil
}

// packCodes stores the codes of a row as the numbers that kernels read.
func (p *packed) packCodes(t *tile, codes []int8) {
	var stored [ops.WholeBlock]byte
	for b := 0; b*len(stored) < len(codes); b++ {
		for i, q := range codes[b*len(stored):][:len(stored)] {
			stored[i] = p.stored(q)
		}
		switch p.bits {
		case 8:
			for i := range 8 {
				copy(t.word(0, 8*b+i), stored[4*i:4*i+4])
			}
		case 4, 5, 6:
			for i := range 4 {
				q := (*[8]byte)(stored[8*i:])
				word := t.word(0, 4*b+i)
				for k := range word {
					word[k] = q[k]&15 | q[4+k]<<4
				}
			}
		case 2, 3:
			packPairs(t, 0, b, &stored, 0)
		}
		switch p.bits {
		case 5:
			packBits(t, 1, b, &stored, 4)
		case 3:
			packBits(t, 1, b, &stored, 2)
		case 6:
			packPairs(t, 1, b, &stored, 4)
		}
	}
}

// stored is the number that stands for a code.
func (p *packed) stored(q int8) byte {
	if p.levels != nil {
		return p.levels[uint8(q)]
	}
	return byte(q + p.offset)
}

// packPairs stores bits shift and shift+1 of the numbers of a block.
func packPairs(t *tile, plane, block int, stored *[ops.WholeBlock]byte, shift int) {
	for i := range 2 {
		word := t.word(plane, 2*block+i)
		for k := range word {
			for q := range 4 {
				word[k] |= stored[16*i+4*q+k] >> shift & 3 << (2 * q)
			}
		}
	}
}

// packBits stores bit shift of the numbers of a block.
func packBits(t *tile, plane, block int, stored *[ops.WholeBlock]byte, shift int) {
	word := t.word(plane, block)
	for k := range word {
		for q := range 8 {
			word[k] |= stored[4*q+k] >> shift & 1 << q
		}
	}
}

// packFloats stores the scales of groups of 16, four to a pair, as floats.
func packFloats(t *tile, scales []float32) {
	for i, d := range scales {
		putFloats(t.word(1, i), []float32{d})
	}
}
