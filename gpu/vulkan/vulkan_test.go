//go:build cgo

package vulkan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
)

// open opens the first device with the validation layer; a message of it fails the test.
func openTest(t testing.TB, o Options) *Device {
	t.Helper()
	o.Validation = true
	opened, err := Open(o)
	if errors.Is(err, device.ErrUnsupported) {
		missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	d := opened.(*Device)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		for _, m := range d.Messages() {
			t.Errorf("validation: %s", m)
		}
	})
	return d
}

func TestList(t *testing.T) {
	all, err := List()
	if errors.Is(err, device.ErrUnsupported) {
		missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		t.Logf("%+v", v)
		if v.API != device.Vulkan || v.Name == "" || v.ID == "" || v.Memory <= 0 {
			t.Errorf("%+v", v)
		}
	}
}

// What passes through staging buffers in several pieces comes back whole.
func TestTransfers(t *testing.T) {
	for name, o := range map[string]Options{"shared": {}, "staged": {Staging: true}} {
		t.Run(name, func(t *testing.T) {
			d := openTest(t, o)
			const size = 2*stagingBytes + 12345
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i * 7 >> 3)
			}
			b, err := d.NewBuffer(size+3, device.Weights)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Write(3, want); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, size+3)
			if err := b.Read(0, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[3:], want) || !bytes.Equal(got[:3], []byte{0, 0, 0}) {
				t.Error("the bytes that were read are not those that were written")
			}
		})
	}
}

// A first program: ./build.sh asks with it whether there is a driver.
func TestRun(t *testing.T) {
	d := openTest(t, Options{})
	b, err := d.NewBuffer(64, device.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.NewKernel(copyShader(), nil)
	if err != nil {
		t.Fatal(err)
	}
	params := binary.LittleEndian.AppendUint32(nil, 4) // words
	params = binary.LittleEndian.AppendUint32(params, 0)
	params = binary.LittleEndian.AppendUint32(params, 8)
	p, err := d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: b}, {Buffer: b}}, Params: params, Groups: [3]uint32{1, 1, 1}}}, device.ProgramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a first program.", "and once again.."} {
		if err := b.Write(0, []byte(text)); err != nil {
			t.Fatal(err)
		}
		f, err := d.Submit(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Wait(time.Minute); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 16)
		if err := b.Read(32, got); err != nil || string(got) != text {
			t.Errorf("%q, want %q (%v)", got, text, err)
		}
	}
}

// The suite of all drivers, on both paths to the device's memory.
func TestConformance(t *testing.T) {
	t.Run("shared", func(t *testing.T) {
		devicetest.Run(t, func(t testing.TB) device.Device { return openTest(t, Options{}) })
	})
	t.Run("staged", func(t *testing.T) {
		devicetest.Run(t, func(t testing.TB) device.Device { return openTest(t, Options{Staging: true}) })
	})
}

// The suite passes in wrappers too: under the limits of families that have Vulkan, and in
// the fault injector without a fault.
func TestWrapped(t *testing.T) {
	devicetest.RunWrapped(t, func(t testing.TB) device.Device { return openTest(t, Options{}) }, "v3d71", "mali-g610", "adreno-128m")
}

func BenchmarkDriver(b *testing.B) {
	devicetest.Bench(b, func(t testing.TB) device.Device {
		d, err := Open(Options{})
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	})
}
