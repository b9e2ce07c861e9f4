package devicetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"ganglion/gpu/device"
)

// words are the words of a bound range.
type words []byte

func (w words) get(i uint32) uint32    { return binary.LittleEndian.Uint32(w[4*int(i):]) }
func (w words) set(i uint32, v uint32) { binary.LittleEndian.PutUint32(w[4*int(i):], v) }

// dispatch runs a command.
func (f *fake) dispatch(c *device.Command) {
	k := c.Kernel.(*fakeKernel)
	var b []words
	for _, r := range c.Bindings {
		data := r.Buffer.(*fakeBuffer).data
		if !f.has("no offsets") {
			data = data[r.Offset:]
		}
		b = append(b, data)
	}
	if f.has("bindings in reverse") && len(b) == 8 {
		slices.Reverse(b[:7])
	}
	p := make([]uint32, 32)
	for i := range len(c.Params) / 4 {
		if !f.has("few parameters") || i < 16 {
			p[i] = binary.LittleEndian.Uint32(c.Params[4*i:])
		}
	}
	if k.s.Name == "spin" {
		time.Sleep(time.Duration(c.Groups[0]*p[0]/60) * time.Microsecond)
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.kernel(k.s.Name, k.constants, p, b, c.Groups)
}

// kernel is what the shader of a name does.
func (f *fake) kernel(name string, constants, p []uint32, b []words, groups [3]uint32) {
	wg := constants[0]
	n := min(p[0], wg*groups[0])
	switch name {
	case "affine":
		for i := range n {
			b[0].set(i, (p[1]+i)*constants[1]+constants[2])
		}
	case "words":
		for i := range uint32(32) {
			b[0].set(i, p[i])
		}
	case "eight":
		for i := range n {
			sum := uint32(0)
			for j := range uint32(7) {
				sum += (j + 1) * b[j].get(i)
			}
			b[7].set(i, sum)
		}
	case "shift":
		for i := range n {
			b[1].set(i, 3*b[0].get((i+p[1])%p[0])+1)
		}
	case "gather":
		sum := b[1].get(p[1])
		for i := range p[0] {
			sum += b[0].get(i)
		}
		b[1].set(p[1], sum)
	case "grid":
		f.grid(wg, p, b[0], groups)
	case "reduce":
		if f.has("small workgroups") {
			wg = min(wg, 32)
		}
		for g := range groups[0] {
			sum := uint32(0)
			for i := range wg {
				sum += b[0].get(g*constants[0] + i)
			}
			b[1].set(g, sum)
		}
	case "spin":
		for i, x := range spin(int(min(wg*groups[0], 128)), p[0]) {
			b[0].set(uint32(i), x)
		}
	case "contract":
		for i := range n {
			b[1].set(i, f.multiplyAdd(b[0].get(3*i), b[0].get(3*i+1), b[0].get(3*i+2)))
		}
	case "texels":
		for i := range n {
			w := b[2].get(i)
			for j := range uint32(4) {
				if !f.has("texels of three") || j < 3 {
					w += (j + 1) * b[0].get(4*i+j)
				}
			}
			b[1].set(i, w)
		}
	default:
		panic(fmt.Sprintf("fake: no kernel %s", name))
	}
}

func (f *fake) grid(wg uint32, p []uint32, out words, groups [3]uint32) {
	if f.has("flat grids") {
		groups[2] = 1
	}
	for z := range groups[2] {
		for y := range groups[1] {
			for x := range groups[0] {
				for i := range wg {
					at := ((z*p[1]+y)*p[0]+x)*wg + i
					out.set(at, out.get(at)+1+x+1000*y+1000000*z+i)
				}
			}
		}
	}
}

func (f *fake) multiplyAdd(x, y, z uint32) uint32 {
	a, b, c := float64(math.Float32frombits(x)), float64(math.Float32frombits(y)), float64(math.Float32frombits(z))
	if f.has("contraction") {
		return math.Float32bits(float32(a*b + c)) // the product is exact
	}
	return math.Float32bits(float32(a*b) + math.Float32frombits(z))
}
