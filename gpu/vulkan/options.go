package vulkan

// Options chooses a device and how it is opened. The zero value opens the first one.
type Options struct {
	ID    string // device.Info.ID of the device; "" takes Index
	Index int    // its place in List

	// CacheDir is the folder in which compiled pipelines are kept, in a folder of their
	// own that only the user may read; "" keeps none.
	CacheDir string
	// Kernels names the set of kernels that will be compiled, a hash of all of them.
	// Pipelines that were kept for another set are dropped.
	Kernels string

	// Staging treats the device as one with memory of its own even when it shares the
	// host's: every buffer of weights or scratch is filled through staging buffers.
	Staging bool

	// Validation turns the Khronos validation layer on, with the validation of
	// synchronisation; Device.Messages gives what it says. Open fails with
	// device.ErrUnsupported where the layer is not installed.
	Validation bool
	// NoSync leaves the validation of synchronisation out. It knows which ranges a
	// command may touch and not which bytes it does, and reports commands side by side
	// that write different parts of one range.
	NoSync bool
}
