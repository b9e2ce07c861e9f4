package compute

import "ganglion/gpu/device"

// builtIn finds a kernel of gpu/kernels.
func builtIn(name string) *device.Shader { return nil }
