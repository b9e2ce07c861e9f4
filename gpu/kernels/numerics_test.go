package kernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/gl"
	"ganglion/gpu/ops"
	"ganglion/gpu/vulkan"
)

// arguments are the values that functions are tried on: every exponent and sign with
// random digits, the borders of the functions' pieces and their neighbours, NaN.
func arguments() []float32 {
	r := rand.New(rand.NewPCG(5, 9))
	var xs []float32
	for range 24 {
		for e := range uint32(253) { // without subnormal numbers, which devices may flush
			xs = append(xs, math.Float32frombits((e+1)<<23|r.Uint32()&0x807FFFFF))
		}
	}
	for range 8192 {
		xs = append(xs, float32(r.NormFloat64()*4))
	}
	for _, x := range []float32{0, 0.625, 9, 10, 20, 87.33, 88, 65504, 65520, 1.0 / (1 << 14), 1.0 / (1 << 24), 1.0 / (1 << 25)} {
		for _, v := range []float32{x, math.Nextafter32(x, 1e30), math.Nextafter32(x, -1e30)} {
			if a := math.Abs(float64(v)); a == 0 || a > 1e-30 {
				xs = append(xs, v, -v)
			}
		}
	}
	return append(xs, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()))
}

// apply runs a kernel with the bindings and parameters of unary.glsl over xs, in rows
// of width columns.
func apply(d device.Device, s *device.Shader, constants []uint32, xs []float32) ([]float32, error) {
	const width = 1 << 12
	rows := (len(xs) + width - 1) / width
	n := rows * width
	batch, err := d.NewBuffer(64, device.Upload)
	if err != nil {
		return nil, err
	}
	defer batch.Close()
	act, err := d.NewBuffer(int64(8*n), device.Readback)
	if err != nil {
		return nil, err
	}
	defer act.Close()
	words := make([]byte, 4*n)
	for i, x := range xs {
		binary.LittleEndian.PutUint32(words[4*i:], math.Float32bits(x))
	}
	if err := errors.Join(batch.Write(0, binary.LittleEndian.AppendUint32(nil, uint32(rows))), act.Write(0, words)); err != nil {
		return nil, err
	}
	var params []byte
	for _, v := range []uint32{0, width, 0, width, uint32(n), width} {
		params = binary.LittleEndian.AppendUint32(params, v)
	}
	k, err := d.NewKernel(s, constants)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	p, err := d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: batch}, {Buffer: act}}, Params: params,
		Groups: [3]uint32{width / 64, uint32(rows), 1}, Barrier: true}}, device.ProgramOptions{})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	f, err := d.Submit(p)
	if err != nil {
		return nil, err
	}
	if err := f.Wait(time.Minute); err != nil {
		return nil, err
	}
	if err := act.Read(int64(4*n), words); err != nil {
		return nil, err
	}
	ys := make([]float32, len(xs))
	for i := range ys {
		ys[i] = math.Float32frombits(binary.LittleEndian.Uint32(words[4*i:]))
	}
	return ys, nil
}

// sameBits compares with the function of exact mode; NaN is equal to every NaN.
func sameBits(xs, ys []float32, f func(float32) float32) error {
	for i, x := range xs {
		got, want := ys[i], f(x)
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			return fmt.Errorf("f(%v, %08x): got %v (%08x), want %v (%08x)", x, math.Float32bits(x), got, math.Float32bits(got), want, math.Float32bits(want))
		}
	}
	return nil
}

var activations = []ops.Act{ops.Identity, ops.SiLU, ops.GELU, ops.GELUErf, ops.GELUQuick, ops.ReLU, ops.ReLU2,
	ops.Sigmoid, ops.Tanh, ops.Softplus, ops.Exponential}

// Every function of exact mode has the bits of gpu/ops in every shading language.
func TestNumericsHaveTheBitsOfOps(t *testing.T) {
	xs := arguments()
	for _, l := range []struct {
		name, api string
		open      func() (device.Device, error)
	}{
		{"vulkan", "vulkan", func() (device.Device, error) { return vulkan.Open(vulkan.Options{Validation: true}) }},
		{"gl43", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL430}) }},
		{"es32", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL320ES}) }},
		{"es31", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL310ES}) }},
		// Mesa may then reorder, as it does for devices without GL_EXT_gpu_shader5, and yet
		// finds nothing that it could.
		{"es31 without precise", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL310ES}) }},
	} {
		t.Run(l.name, func(t *testing.T) {
			d := devicetest.Open(t, l.api, l.open)
			exact := *Get("unary")
			if l.name == "es31 without precise" {
				exact.GLSL = "#undef PRECISE\n#define PRECISE\n" + exact.GLSL
			}
			for _, a := range activations {
				ys, err := apply(d, &exact, []uint32{64, uint32(a)}, xs)
				if err != nil {
					t.Fatal(err)
				}
				if err := sameBits(xs, ys, a.Apply); err != nil {
					t.Errorf("activation %d: %v", a, err)
				}
			}
			// The guard can fail: fast mode's functions are others.
			ys, err := apply(d, Get("unary_fast"), []uint32{64, uint32(ops.SiLU)}, xs)
			if err != nil {
				t.Fatal(err)
			}
			if sameBits(xs, ys, ops.SiLU.Apply) == nil {
				t.Error("the driver's own functions pass as those of exact mode")
			}
		})
	}
}
