//go:build cgo

package vulkan

// #cgo linux LDFLAGS: -ldl
// #cgo CFLAGS: -std=gnu11
// #include <stdlib.h>
// #include "gv.h"
import "C"

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"ganglion/gpu/device"
)

// instance is a connection to Vulkan. It keeps the validation layer's messages.
type instance struct {
	c        *C.gv_instance
	lock     sync.Mutex // of what follows
	messages []string
	closed   bool
}

func newInstance(o Options) (*instance, error) {
	in := &instance{}
	validation, sync := C.int(0), C.int(0)
	if o.Validation {
		validation = 1
		if !o.NoSync {
			sync = 1
		}
	}
	if err := failure("open", C.gv_instance_create(validation, sync, &in.c)); err != nil {
		return nil, err
	}
	return in, nil
}

// take gives all messages since the last call, the oldest first.
func (in *instance) take() []string {
	in.lock.Lock()
	defer in.lock.Unlock()
	in.collect()
	all := in.messages
	in.messages = nil
	return all
}

func (in *instance) collect() {
	if in.closed {
		return
	}
	at := len(in.messages)
	for m := C.gv_messages(in.c); m != nil; {
		in.messages = append(in.messages, C.GoString((*C.char)(unsafe.Add(unsafe.Pointer(m), C.sizeof_gv_message))))
		next := m.next
		C.free(unsafe.Pointer(m))
		m = next
	}
	slices.Reverse(in.messages[at:])
}

func (in *instance) close() {
	in.lock.Lock()
	defer in.lock.Unlock()
	if in.closed {
		return
	}
	C.gv_instance_destroy(in.c)
	in.collect()
	C.gv_instance_free(in.c)
	in.closed = true
}

// physical is a device that could be opened.
type physical struct {
	index C.uint32_t // among all of the instance
	props C.gv_properties
	info  device.Info
}

// devices lists those that compute with Vulkan 1.1, in the driver's order.
func (in *instance) devices() ([]physical, error) {
	var n C.uint32_t
	if err := failure("list", C.gv_instance_count(in.c, &n)); err != nil {
		return nil, err
	}
	var all []physical
	for i := range n {
		p := physical{index: i}
		if err := failure("list", C.gv_instance_properties(in.c, i, &p.props)); err != nil {
			return nil, err
		}
		if p.props.api_version < C.VK_API_VERSION_1_1 || p.props.has_compute == 0 {
			continue
		}
		p.info = describe(&p.props)
		id := p.info.ID
		for twin := 2; slices.ContainsFunc(all, func(q physical) bool { return q.info.ID == p.info.ID }); twin++ {
			p.info.ID = fmt.Sprintf("%s-%d", id, twin)
		}
		all = append(all, p)
	}
	return all, nil
}

// vendors are the names behind the numbers of the PCI registry and Khronos's own.
var vendors = map[C.uint32_t]string{
	0x1002: "AMD", 0x1010: "Imagination", 0x106b: "Apple", 0x10de: "NVIDIA", 0x13b5: "ARM",
	0x14e4: "Broadcom", 0x5143: "Qualcomm", 0x8086: "Intel", 0x10005: "Mesa",
}

func describe(p *C.gv_properties) device.Info {
	uuid := C.GoBytes(unsafe.Pointer(&p.device_uuid), C.int(len(p.device_uuid)))
	v := device.Info{
		API:      device.Vulkan,
		Version:  fmt.Sprintf("%d.%d.%d", p.api_version>>22&0x7f, p.api_version>>12&0x3ff, p.api_version&0xfff),
		Name:     C.GoString(&p.name[0]),
		Vendor:   vendors[p.vendor],
		Driver:   C.GoString(&p.driver_name[0]),
		ID:       fmt.Sprintf("vulkan-%04x-%04x-%s-%x", p.vendor, p.device, hex.EncodeToString(uuid), p.driver_version),
		Software: p._type == C.VK_PHYSICAL_DEVICE_TYPE_CPU,
		Discrete: p._type == C.VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
	}
	if v.Vendor == "" {
		v.Vendor = fmt.Sprintf("vendor %04x", p.vendor)
	}
	if v.Driver == "" {
		v.Driver = fmt.Sprintf("version %x", p.driver_version)
	} else if text := C.GoString(&p.driver_info[0]); text != "" {
		v.Driver += " " + text
	}
	for _, h := range p.memory.memoryHeaps[:p.memory.memoryHeapCount] {
		if h.flags&C.VK_MEMORY_HEAP_DEVICE_LOCAL_BIT != 0 {
			v.Memory = max(v.Memory, int64(min(h.size, math.MaxInt64)))
		}
	}
	return v
}

// shares says whether the device's memory is the host's.
func shares(p *C.gv_properties) bool {
	return p._type == C.VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || p._type == C.VK_PHYSICAL_DEVICE_TYPE_CPU
}

func limits(p *C.gv_properties) device.Limits {
	l := device.Limits{
		StorageBuffers: clampInt(p.storage_buffers),
		BindingBytes:   int64(p.storage_range),
		BufferBytes:    int64(min(p.allocation_bytes, math.MaxInt64)),
		OffsetAlign:    int64(max(p.offset_align, p.texel_align, 16)),
		Invocations:    clampInt(p.invocations),
		SharedBytes:    clampInt(p.shared_bytes),
		ParamBytes:     clampInt(p.push_bytes),
		Texels:         int64(p.texels),
	}
	for i, n := range p.groups {
		l.Groups[i] = int64(n)
	}
	return l
}

func clampInt(n C.uint32_t) int { return int(min(n, math.MaxInt32)) }

func caps(p *C.gv_properties, o Options) device.Caps {
	return device.Caps{
		Precise:   true, // NoContraction
		Subgroup:  clampInt(p.subgroup),
		Dot4:      p.dot4 != 0,
		Half:      p.half != 0,
		Timer:     p.timestamp_bits != 0 && p.timestamp_period > 0,
		HostShare: shares(p) && !o.Staging,
	}
}

// List gives the devices of this machine that can be opened, without opening one. The
// error wraps device.ErrUnsupported where there is no Vulkan.
func List() ([]device.Info, error) {
	in, err := newInstance(Options{})
	if err != nil {
		return nil, err
	}
	defer in.close()
	found, err := in.devices()
	if err != nil {
		return nil, err
	}
	all := make([]device.Info, len(found))
	for i := range found {
		all[i] = found[i].info
	}
	return all, nil
}
