//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"fmt"

	"ganglion/gpu/device"
)

// status is what a function of ours in C gives, with the result of Vulkan's.
type (
	status = C.gv_status
	result = C.VkResult
)

// results are the names of what Vulkan's functions give and what they mean to a caller.
var results = map[C.VkResult]struct {
	name string
	err  error
}{
	C.VK_ERROR_OUT_OF_HOST_MEMORY:    {"out of host memory", device.ErrOutOfMemory},
	C.VK_ERROR_OUT_OF_DEVICE_MEMORY:  {"out of device memory", device.ErrOutOfMemory},
	C.VK_ERROR_OUT_OF_POOL_MEMORY:    {"out of pool memory", device.ErrOutOfMemory},
	C.VK_ERROR_MEMORY_MAP_FAILED:     {"memory cannot be mapped", device.ErrOutOfMemory},
	C.VK_ERROR_TOO_MANY_OBJECTS:      {"too many objects", device.ErrOutOfMemory},
	C.VK_ERROR_DEVICE_LOST:           {"the driver has lost the device", device.ErrLost},
	C.VK_ERROR_INITIALIZATION_FAILED: {"initialisation failed", device.ErrUnsupported},
	C.VK_ERROR_LAYER_NOT_PRESENT:     {"the layer is not installed", device.ErrUnsupported},
	C.VK_ERROR_EXTENSION_NOT_PRESENT: {"an extension is missing", device.ErrUnsupported},
	C.VK_ERROR_FEATURE_NOT_PRESENT:   {"a feature is missing", device.ErrUnsupported},
	C.VK_ERROR_INCOMPATIBLE_DRIVER:   {"no driver is installed", device.ErrUnsupported},
	C.VK_ERROR_INVALID_SHADER_NV:     {"invalid shader", device.ErrCompile},
	C.VK_TIMEOUT:                     {"not signalled", device.ErrTimeout},
	C.GV_NO_LIBRARY:                  {"this machine has no Vulkan library", device.ErrUnsupported},
	C.GV_OLD_LOADER:                  {"the Vulkan library is older than 1.1 or incomplete", device.ErrUnsupported},
	C.GV_NO_DEVICE:                   {"no such device", device.ErrUnsupported},
}

// failure is the error of a status at a place, nil for success.
func failure(place string, s status) error {
	if s.result >= 0 && s.result != C.VK_TIMEOUT {
		return nil
	}
	where := C.GoString(s.where)
	if r, ok := results[s.result]; ok {
		return fmt.Errorf("vulkan: %s: %s: %s: %w", place, where, r.name, r.err)
	}
	return fmt.Errorf("vulkan: %s: %s: error %d", place, where, int(s.result))
}
