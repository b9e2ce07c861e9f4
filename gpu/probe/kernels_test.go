package probe

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/gl"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
	"ganglion/gpu/vulkan"
)

// usedBy is a question that makes use of a kernel, on a device, in a mode.
type usedBy struct {
	*question
	device  device.Device
	mode    ops.Numerics
	checked bool // that it is answered well where nothing is wrong
}

// disturbed gives the answer to the question with a fault in its device, and whether it
// struck.
func (u *usedBy) disturbed(t *testing.T, fault devicetest.Fault) (Answer, bool) {
	t.Helper()
	d := devicetest.Inject(u.device, fault)
	b := compute.New(d, compute.Options{Shared: true, Deadline: time.Minute})
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	want, err := u.truth()
	if err != nil {
		t.Fatal(err)
	}
	return u.answer(b, u.mode, want, 0), len(d.Fired()) > 0
}

// found is how the fault shows, empty where it does not.
func (u *usedBy) found(t *testing.T, fault devicetest.Fault) (how string, struck bool) {
	t.Helper()
	a, struck := u.disturbed(t, fault)
	if a.Missing || a.Lost {
		t.Fatalf("%s, %s: %+v", u.name, u.mode, a)
	}
	return a.Fault, struck
}

// opener opens a driver's device.
type opener struct {
	name, api string // api as in GANGLION_REQUIRE
	open      func() (device.Device, error)
}

// openers are the drivers and dialects whose kernels are made wrong.
func openers() []opener {
	return []opener{
		{"vulkan", "vulkan", func() (device.Device, error) { return vulkan.Open(vulkan.Options{}) }},
		{"gl43", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL430}) }},
		{"es32", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL320ES}) }},
		{"es31", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL310ES}) }},
	}
}

// device opens the device under the faults, or skips. The layer of validation is for the
// tests of gpu/compute.
func (o opener) device(t *testing.T) device.Device {
	t.Helper()
	return devicetest.Open(t, o.api, o.open)
}

// use is a kernel in a mode.
type use struct {
	kernel string
	mode   ops.Numerics
}

// idle is a device that computes nothing and notes which kernels were asked for.
type idle struct {
	device.Device
	used map[string]bool
}

type idleKernel struct{ s *device.Shader }

func (k idleKernel) Shader() *device.Shader { return k.s }
func (k idleKernel) Close() error           { return nil }

func (d idle) NewKernel(s *device.Shader, _ []uint32) (device.Kernel, error) {
	d.used[s.Name] = true
	return idleKernel{s}, nil
}

type idleProgram int

func (p idleProgram) Commands() int { return int(p) }
func (p idleProgram) Close() error  { return nil }

func (d idle) NewProgram(commands []device.Command, _ device.ProgramOptions) (device.Program, error) {
	return idleProgram(len(commands)), nil
}

type idleFence struct{}

func (idleFence) Wait(time.Duration) error { return nil }
func (idleFence) Times() []time.Duration   { return nil }

func (d idle) Submit(device.Program) (device.Fence, error) { return idleFence{}, nil }

// usersOf notes which questions make use of each kernel on a device, without computing
// any of them.
func usersOf(t *testing.T, d device.Device, users map[use][]*usedBy) {
	t.Helper()
	for _, q := range questions() {
		for _, mode := range bothModes {
			used := map[string]bool{}
			b := compute.New(idle{d, used}, compute.Options{Shared: true})
			if _, err := q.run(b, mode); err != nil && !strings.Contains(err.Error(), "is not finite") { // what nobody computed
				t.Fatalf("%s: %v", q.name, err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			for name := range used {
				users[use{name, mode}] = append(users[use{name, mode}], &usedBy{question: q, device: d, mode: mode})
			}
		}
	}
}

// read are the outputs of a kernel that something reads, 0 for all together. gluwhole and
// normchain leave their results as floats too, and where a product takes them as whole
// numbers nothing else does; headstore leaves keys among the activations too, and in the cache, from which
// they are read, with values and, for renderers, a copy of the queries.
func read(kernel string) []int {
	switch {
	case strings.HasPrefix(kernel, "gluwhole"), strings.HasPrefix(kernel, "normchain"):
		return []int{2}
	case strings.HasPrefix(kernel, "headstore"):
		return []int{2, 3, 4}
	}
	return []int{0}
}

// wrongResults are the ways in which a kernel alone is wrong: in a word, a few, or as much
// as a workgroup writes. A flipped bit of one word can lie below what fast mode rounds, and
// so can that of a few halves of a key among hundreds of them.
func wrongResults(name string, mode ops.Numerics) (all []devicetest.Fault) {
	tiles := []int64{64}
	switch {
	case mode == ops.Fast && strings.HasPrefix(name, "headstore"):
		tiles = []int64{4096}
	case everything() && mode == ops.Exact:
		tiles = []int64{4, 64, 4096}
	case everything():
		tiles = []int64{64, 4096}
	}
	for _, n := range tiles {
		for _, how := range []devicetest.Alteration{devicetest.Flipped, devicetest.Zeroed, devicetest.Kept, devicetest.Shifted} {
			for _, output := range read(name) {
				all = append(all, devicetest.Fault{Kind: devicetest.WrongKernel, Kernel: name, Bytes: n, How: how, Output: output})
			}
		}
	}
	return all
}

func everything() bool { return os.Getenv("GANGLION_GPU_ALL") != "" }

// baseSet are the kernels that every device gets; TestWrongVariantsAreFound has the others.
func baseSet() []*device.Shader {
	return slices.DeleteFunc(kernels.All(), func(s *device.Shader) bool { return s.Needs != "" })
}

// Each kernel of the base set, alone, is found when a part of what it writes is wrong, in
// every mode that makes use of it. Kernels with texel fetches run on the renderer as it
// is; the others on the same one under the limits of WebGPU, passing for a GPU. Without
// GANGLION_GPU_ALL each driver has its share of the kernels, other ones than the next.
func TestWrongKernelsAreFound(t *testing.T) {
	const share = 48 // one kernel in so many
	for n, o := range openers() {
		t.Run(o.name, func(t *testing.T) {
			users, dev := kernelUsers(t, o)
			for i, s := range baseSet() {
				if !everything() && i%share != n*share/len(openers()) {
					continue
				}
				t.Run(s.Name, func(t *testing.T) {
					struck := false
					for _, mode := range bothModes {
						for _, fault := range wrongResults(s.Name, mode) {
							struck = isFound(t, fault, users[use{s.Name, mode}]) || struck
						}
					}
					if !struck {
						t.Error("nothing was altered")
					}
				})
			}
			if n == 0 || everything() {
				t.Run("stale", func(t *testing.T) { staleOutputsAreFound(t, users) })
			}
			if err := dev.Health(); err != nil {
				t.Error(err)
			}
		})
	}
}

// kernelUsers opens a driver's device and finds who makes use of each kernel there.
func kernelUsers(t *testing.T, o opener) (map[use][]*usedBy, device.Device) {
	t.Helper()
	dev := devicetest.Keep(o.device(t))
	t.Cleanup(func() { dev.Close() })
	profiles := devicetest.Profiles()
	floor := profiles[slices.IndexFunc(profiles, func(p devicetest.Profile) bool { return p.Name == "webgpu-floor" })]
	users := map[use][]*usedBy{}
	usersOf(t, dev, users)
	usersOf(t, devicetest.AsHardware(floor.Wrap(dev)), users)
	return users, dev
}

// isFound puts the questions that make use of a kernel to a device where it is wrong, until
// one is answered wrongly that is answered well otherwise. A question in which the fault
// alters nothing cannot tell it.
func isFound(t *testing.T, fault devicetest.Fault, users []*usedBy) (struck bool) {
	t.Helper()
	asked := []string{}
	for _, u := range users {
		how, here := u.found(t, fault)
		if how != "" {
			u.sound(t)
			return true
		}
		if struck = struck || here; here {
			asked = append(asked, u.name+" in "+u.mode.String()+" mode")
		}
	}
	if struck {
		t.Errorf("%d bytes %s of output %d are not found by %s", fault.Bytes, fault.How, fault.Output, strings.Join(asked, ", "))
	}
	return struck
}

// sound checks, once, that the question is answered well where nothing is wrong.
func (u *usedBy) sound(t *testing.T) {
	t.Helper()
	if u.checked {
		return
	}
	u.checked = true
	if how, _ := u.found(t, devicetest.Fault{Kind: devicetest.WrongKernel, Kernel: "none"}); how != "" {
		t.Errorf("%s in %s mode, without a fault: %s", u.name, u.mode, how)
	}
}

// staleOutputsAreFound leaves out one submission of a question after another: each is
// seen in the answer. Questions of attention are left out: they copy pages of windows that
// nobody reads afterwards, so that such a copy is rightly not missed.
func staleOutputsAreFound(t *testing.T, users map[use][]*usedBy) {
	for _, kernel := range []string{"gateddelta", "embed_q4_k", "rmsnorm"} {
		if len(users[use{kernel, ops.Exact}]) == 0 {
			t.Fatalf("no question makes use of %s", kernel)
		}
		u := users[use{kernel, ops.Exact}][0]
		n := 1
		for ; ; n++ {
			fault, struck := u.found(t, devicetest.Fault{Kind: devicetest.Stale, N: n})
			if !struck {
				break
			}
			if fault == "" {
				t.Errorf("%s: submission %d was left out and not missed", u.name, n)
			}
		}
		if batches := len(u.batches); n <= batches {
			t.Errorf("%s: %d submissions for %d batches", u.name, n-1, batches)
		}
	}
}
