// Package device is what gpu/compute needs of a GPU and what gpu/vulkan and gpu/gl
// provide: buffers, kernels, recorded programs, fences. It holds no code of a driver
// and imports nothing of ours, so that limit profiles and fault injectors
// (gpu/device/devicetest) can wrap any device.
//
// A program is a list of dispatches that is recorded once and submitted many times;
// what changes from one submission to the next stands in buffers. A device and all that
// it made belong to one goroutine at a time, except Info, Limits, Caps and Health.
package device

import (
	"errors"
	"time"
)

// Sentinels a caller may ask for with errors.Is. ErrLost and ErrTimeout mean that the
// device is of no use any more: everything on it is gone. A timeout is the device's, not
// the fence's: until the fence passes after all, if ever, everything that is asked of the
// device fails at once with ErrTimeout, and closing what it made frees nothing and waits
// for nothing.
var (
	ErrLost        = errors.New("device: lost")
	ErrTimeout     = errors.New("device: fence not signalled in time")
	ErrOutOfMemory = errors.New("device: out of memory")
	ErrLimit       = errors.New("device: limit exceeded")
	ErrCompile     = errors.New("device: kernel does not compile")
	ErrUnsupported = errors.New("device: unsupported")
	ErrClosed      = errors.New("device: closed")
)

// API is the programming interface of a device.
type API string

// The programming interfaces.
const (
	Vulkan   API = "vulkan"
	OpenGL   API = "gl"
	OpenGLES API = "gles"
)

// Info describes a device to people and keys what is remembered about it.
type Info struct {
	API      API
	Version  string // of the API: "1.3.230", "4.5", "3.2"
	Name     string // of the hardware, as the driver gives it
	Vendor   string
	Driver   string // name and version of the driver
	ID       string // stable over restarts: vendor and device numbers or UUID, driver version
	Software bool   // a renderer on the CPU; never chosen unasked
	Discrete bool   // has memory of its own
	Memory   int64  // bytes it can hold, 0 = unknown
}

// Limits bound what a kernel and a buffer may ask for. gpu/kernels stays inside the
// portable floor: 8 storage buffers, 128 MiB a binding, 256 invocations, 16 KiB shared
// memory, 128 bytes of parameters, 65,535 workgroups per axis.
type Limits struct {
	StorageBuffers int      // bindings of one kernel
	BindingBytes   int64    // largest range of a binding
	BufferBytes    int64    // largest buffer
	OffsetAlign    int64    // of a binding's offset
	Invocations    int      // of a workgroup
	SharedBytes    int      // of a workgroup
	ParamBytes     int      // of a dispatch
	Groups         [3]int64 // workgroups of a dispatch
	// Texels is the length in texels of 16 bytes of the largest range that a binding can
	// read by texel fetches (Binding.Texels); 0 where the device or its shading language
	// has none. OffsetAlign holds for such a binding as well.
	Texels int64
}

// Caps are abilities beyond the floor.
type Caps struct {
	Precise   bool // the shading language can forbid contraction
	Subgroup  int  // invocations of a subgroup with arithmetic, 0 = none
	Dot4      bool // kernels can ask for dot products of four signed bytes, fast or not
	Half      bool // arithmetic in halves
	Timer     bool // Fence.Times works
	HostShare bool // device memory is host memory: buffers are written without a copy
}

// Usage says how a buffer is used.
type Usage uint8

const (
	// Weights are written once and read by kernels.
	Weights Usage = iota
	// Scratch is written and read by kernels.
	Scratch
	// Upload is written by the host before every submission and read by kernels.
	Upload
	// Readback is written by kernels and read by the host after every submission.
	Readback
)

// Buffer is device memory. Write and Read may be called when no submission that uses
// the buffer is under way; they are bounds-checked. A new buffer holds zeros.
type Buffer interface {
	Size() int64
	Write(offset int64, data []byte) error
	Read(offset int64, data []byte) error
	// Close frees the memory; it may be called twice. Programs that use the buffer are
	// closed first.
	Close() error
}

// Kernel is a compiled shader with fixed constants.
type Kernel interface {
	Shader() *Shader
	Close() error
}

// Range is a part of a buffer. Size 0 is the rest of the buffer.
type Range struct {
	Buffer       Buffer
	Offset, Size int64
}

// Command is one dispatch.
type Command struct {
	Kernel   Kernel
	Bindings []Range   // by binding number, as many as the shader declares
	Params   []byte    // exactly Shader.ParamBytes, little-endian words
	Groups   [3]uint32 // workgroups; each at least 1
	// Barrier makes the writes of all earlier commands visible to this one. Without it
	// the command may run beside those since the last barrier.
	Barrier bool
}

// Program is a recorded list of commands. It may be submitted again when the fence of
// its last submission has been waited for.
type Program interface {
	Commands() int
	Close() error
}

// ProgramOptions changes how a program is recorded.
type ProgramOptions struct {
	Timed bool // Fence.Times will be asked for
}

// Fence is one submission.
type Fence interface {
	// Wait sleeps until the submission has ended and gives its fate: nil, or an error
	// that wraps ErrLost, or ErrTimeout when it has not ended in time. It may be called
	// again after ErrTimeout.
	Wait(timeout time.Duration) error
	// Times are the durations of the commands of a timed program, nil without Caps.Timer.
	// It may be called after Wait has returned nil.
	Times() []time.Duration
}

// Device is an opened GPU.
type Device interface {
	Info() Info
	Limits() Limits
	Caps() Caps
	NewBuffer(size int64, u Usage) (Buffer, error)
	// NewKernel compiles a shader with the values of its constants, by Shader.Constants;
	// a shorter list leaves the rest at their defaults. The same shader and constants
	// may be compiled twice; drivers keep what they compiled.
	NewKernel(s *Shader, constants []uint32) (Kernel, error)
	// NewProgram records commands. What they refer to stays open as long as the program.
	NewProgram(commands []Command, o ProgramOptions) (Program, error)
	// Submit starts a program after all that was submitted before.
	Submit(p Program) (Fence, error)
	// Health is nil, or why the device is lost. It may be called from any goroutine.
	Health() error
	// Close waits for what runs and frees everything; it may be called twice.
	Close() error
}
