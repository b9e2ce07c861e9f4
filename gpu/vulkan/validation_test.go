//go:build cgo

package vulkan

import (
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/kernels"
)

// openAlone opens a device whose messages the test reads itself.
func openAlone(t *testing.T, o Options) *Device {
	t.Helper()
	o.Validation = true
	d, err := Open(o)
	if err != nil {
		openTest(t, o) // skips where that is right
		t.Fatal(err)
	}
	return d.(*Device)
}

// without records two commands of which the second needs a barrier, and leaves it out.
func without(t *testing.T, d *Device) {
	t.Helper()
	var b [3]device.Buffer
	for i := range b {
		var err error
		if b[i], err = d.NewBuffer(256, device.Scratch); err != nil {
			t.Fatal(err)
		}
	}
	k, err := d.NewKernel(copyShader(), nil)
	if err != nil {
		t.Fatal(err)
	}
	step := func(from, to device.Buffer) device.Command {
		return device.Command{Kernel: k, Bindings: []device.Range{{Buffer: from}, {Buffer: to}}, Params: make([]byte, 12), Groups: [3]uint32{1, 1, 1}}
	}
	if _, err := d.NewProgram([]device.Command{step(b[0], b[1]), step(b[1], b[2])}, device.ProgramOptions{}); err != nil {
		t.Fatal(err)
	}
}

// copyShader copies words from one buffer to another.
func copyShader() *device.Shader { return kernels.Get("copy") }

// A missing barrier is heard, and only with validation of synchronisation.
func TestMissingBarrierIsHeard(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want bool
	}{{Options{}, true}, {Options{NoSync: true}, false}} {
		d := openAlone(t, tt.o)
		without(t, d)
		messages := d.Messages()
		if got := slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, "SYNC-HAZARD-READ-AFTER-WRITE") }); got != tt.want {
			t.Errorf("%+v: heard %v, want %v: %q", tt.o, got, tt.want, messages)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if left := d.Messages(); len(left) > 0 {
			t.Errorf("%+v: at the end: %q", tt.o, left)
		}
	}
}

// What is left open is heard when the device is closed: the silence of the other tests
// means that nothing leaks.
func TestLeakIsHeard(t *testing.T) {
	d := openAlone(t, Options{})
	b, err := d.NewBuffer(256, device.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	delete(d.buffers, b.(*Buffer))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	messages := d.Messages()
	if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, "vkDestroyDevice") }) {
		t.Errorf("%q, want a word on what was left", messages)
	}
	if again := d.Messages(); len(again) > 0 {
		t.Errorf("messages are given twice: %q", again)
	}
}
