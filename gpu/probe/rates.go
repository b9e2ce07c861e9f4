package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ganglion/gpu/device"
)

// streamBytes is what the rates of memory are measured with at once: more than any cache of
// an edge device holds.
const streamBytes = 64 << 20

// CopyRate is how many gigabytes a second a device reads and writes, both counted, when
// it copies with the shader "copy" of gpu/kernels: the best of five submissions.
func CopyRate(d device.Device, shader *device.Shader) (rate float64, err error) {
	if shader == nil || shader.ParamBytes != 12 || len(shader.Bindings) != 2 {
		return 0, fmt.Errorf("probe: copy rate: the kernel has another form: %w", device.ErrUnsupported)
	}
	size := streamSize(d)
	s := stream{d: d}
	defer func() { err = errors.Join(err, s.close()) }()
	from, err := s.buffer(size, device.Scratch)
	if err != nil {
		return 0, err
	}
	to, err := s.buffer(size, device.Scratch)
	if err != nil {
		return 0, err
	}
	params := append(binary.LittleEndian.AppendUint32(nil, uint32(size/4)), make([]byte, 8)...)
	best, err := s.best(shader, nil, device.Command{Bindings: []device.Range{{Buffer: from}, {Buffer: to}}, Params: params, Groups: [3]uint32{4096, 1, 1}})
	return 2 * float64(size) / best.Seconds() / 1e9, err
}

// readShapes are the workgroups and reads of an invocation that ReadRate tries.
var readShapes = [][]uint32{{256, 16}, {256, 4}, {64, 16}}

// ReadRate is how many gigabytes a second a kernel reads that does nothing else, with the
// shader "read" of gpu/kernels, or "read_texels" where a device is read by texel fetches: the best
// of some shapes, five submissions each. What it read is checked.
func ReadRate(d device.Device, shaders func(name string) *device.Shader) (rate float64, err error) {
	size := streamSize(d) &^ (1<<16 - 1)
	s := stream{d: d}
	defer func() { err = errors.Join(err, s.close()) }()
	src, err := s.buffer(size, device.Weights)
	if err != nil {
		return 0, err
	}
	data := make([]byte, size)
	for i, x := 0, uint32(1); i < len(data); i += 4 {
		x = x*1664525 + 1013904223
		binary.LittleEndian.PutUint32(data[i:], x)
	}
	if err := src.Write(0, data); err != nil {
		return 0, err
	}
	out, err := s.buffer(size/16, device.Readback) // of four reads an invocation
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"read", "read_texels"} {
		shader := shaders(name)
		if shader == nil || len(shader.Bindings) != 2 {
			return 0, fmt.Errorf("probe: read rate: the kernel has another form: %w", device.ErrUnsupported)
		}
		// Software renderers are read by texel fetches wherever they have them.
		texels := 16*d.Limits().Texels >= size
		if shader.Bindings[0].Texels && !texels || !shader.Bindings[0].Texels && texels && d.Info().Software {
			continue
		}
		for _, c := range readShapes {
			groups := size / 16 / int64(c[0]*c[1])
			if int64(c[0]) > int64(d.Limits().Invocations) || groups > d.Limits().Groups[0] {
				continue
			}
			best, err := s.best(shader, c, device.Command{Bindings: []device.Range{{Buffer: src}, {Buffer: out}}, Groups: [3]uint32{uint32(groups), 1, 1}})
			if err != nil {
				return 0, err
			}
			if err := wasRead(out, data, c[0], c[1]); err != nil {
				return 0, fmt.Errorf("probe: read rate: %s %v: %w", name, c, err)
			}
			rate = max(rate, float64(size)/best.Seconds()/1e9)
		}
	}
	return rate, nil
}

var errNotRead = errors.New("the kernel did not read all that it was given")

// wasRead compares what the invocations left with the data.
func wasRead(out device.Buffer, data []byte, wg, loads uint32) error {
	got := make([]byte, len(data)/16/int(loads)*4)
	if err := out.Read(0, got); err != nil {
		return err
	}
	want := make([]uint32, len(got)/4)
	for i := range len(data) / 16 {
		of := i/int(wg*loads)*int(wg) + i%int(wg)
		for at := 16 * i; at < 16*i+16; at += 4 {
			want[of] ^= binary.LittleEndian.Uint32(data[at:])
		}
	}
	for i, w := range want {
		if binary.LittleEndian.Uint32(got[4*i:]) != w {
			return errNotRead
		}
	}
	return nil
}

// streamSize is what a device is measured with.
func streamSize(d device.Device) int64 {
	return min(streamBytes, d.Limits().BindingBytes, d.Limits().BufferBytes) &^ 255
}

// stream is what a measurement of memory has open.
type stream struct {
	d    device.Device
	open []interface{ Close() error }
}

// close closes all, the last one first.
func (s *stream) close() error {
	var errs []error
	for i := len(s.open) - 1; i >= 0; i-- {
		errs = append(errs, s.open[i].Close())
	}
	return errors.Join(errs...)
}

func (s *stream) buffer(size int64, u device.Usage) (device.Buffer, error) {
	b, err := s.d.NewBuffer(size, u)
	if err == nil {
		s.open = append(s.open, b)
	}
	return b, err
}

// best is the shortest of five submissions of a command.
func (s *stream) best(shader *device.Shader, constants []uint32, c device.Command) (time.Duration, error) {
	k, err := s.d.NewKernel(shader, constants)
	if err != nil {
		return 0, err
	}
	s.open = append(s.open, k)
	c.Kernel = k
	p, err := s.d.NewProgram([]device.Command{c}, device.ProgramOptions{})
	if err != nil {
		return 0, err
	}
	s.open = append(s.open, p)
	best := time.Hour
	for range 5 {
		from := time.Now()
		f, err := s.d.Submit(p)
		if err != nil {
			return 0, err
		}
		if err := f.Wait(10 * time.Second); err != nil {
			return 0, err
		}
		best = min(best, time.Since(from))
	}
	return best, nil
}
