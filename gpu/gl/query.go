//go:build cgo && (linux || windows)

package gl

// #include <stdlib.h>
// #include "gl.h"
import "C"

import (
	"encoding/hex"
	"fmt"
	"unsafe"

	"ganglion/gpu/device"
)

// Names of OpenGL, from the registry's gl.xml.
const (
	glVendor        = 0x1F00
	glRenderer      = 0x1F01
	glVersion       = 0x1F02
	majorVersion    = 0x821B
	minorVersion    = 0x821C
	numExtensions   = 0x821D
	storageBlocks   = 0x90DB // GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS
	storageBindings = 0x90DD // GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS
	storageBytes    = 0x90DE // GL_MAX_SHADER_STORAGE_BLOCK_SIZE
	storageAlign    = 0x90DF
	uniformBytes    = 0x8A30
	uniformAlign    = 0x8A34
	groupCount      = 0x91BE
	groupSize       = 0x91BF
	groupTotal      = 0x90EB
	sharedBytes     = 0x8262
	binaryFormats   = 0x87FE
	nvxMemoryTotal  = 0x9047 // GL_GPU_MEMORY_INFO_DEDICATED_VIDMEM_NVX, KiB
	subgroupSize    = 0x9532
	subgroupStages  = 0x9533
	subgroupCan     = 0x9534
	gpuDisjoint     = 0x8FBB
	texelsMost      = 0x8C2B // GL_MAX_TEXTURE_BUFFER_SIZE
	texelsAlign     = 0x919F // GL_TEXTURE_BUFFER_OFFSET_ALIGNMENT
)

// facts is what a new context is asked.
type facts struct {
	identity
	limits       device.Limits
	caps         device.Caps
	uniformAlign int64
	mapped       bool // buffers may stay mapped
	disjoint     bool // elapsed times may be void
	binaries     bool // compiled programs can be read back
	timing       C.int
}

// extensions gives the context's extensions as a set.
func extensions(g *C.struct_ggl) map[string]bool {
	set := map[string]bool{}
	for i := range C.ggl_integer(g, numExtensions) {
		if s := C.ggl_extension(g, C.GLuint(i)); s != nil {
			set[C.GoString(s)] = true
		}
	}
	return set
}

// ask reads what the context is and can.
func ask(g *C.struct_ggl, name device.Dialect) (*facts, error) {
	d := dialects[name]
	major, minor := int(C.ggl_integer(g, majorVersion)), int(C.ggl_integer(g, minorVersion))
	if major*10+minor < d.major*10+d.minor {
		return nil, fmt.Errorf("version %d.%d is older than %d.%d: %w", major, minor, d.major, d.minor, device.ErrUnsupported)
	}
	ext := extensions(g)
	f := &facts{
		identity: identity{
			vendor:   text(g, glVendor),
			renderer: text(g, glRenderer),
			version:  text(g, glVersion),
			number:   fmt.Sprintf("%d.%d", major, minor),
			place:    C.GoString(&g.place[0]),
		},
		uniformAlign: max(16, int64(C.ggl_integer(g, uniformAlign))),
		binaries:     C.ggl_integer(g, binaryFormats) > 0,
	}
	if ext["GL_NVX_gpu_memory_info"] {
		f.memory = int64(C.ggl_integer(g, nvxMemoryTotal)) << 10
	}
	f.limits = limits(g)
	f.find(g, d, major*10+minor, ext)
	f.caps.Precise = name != device.GLSL310ES || ext["GL_EXT_gpu_shader5"]
	f.caps.HostShare = isSoftware(f.renderer) || !isDiscrete(f.vendor, f.renderer)
	f.caps.Half = ext["GL_AMD_gpu_shader_half_float"] || ext["GL_EXT_shader_explicit_arithmetic_types_float16"]
	const compute, arithmetic = 0x20, 0x04
	if ext["GL_KHR_shader_subgroup"] && C.ggl_integer(g, subgroupStages)&compute != 0 && C.ggl_integer(g, subgroupCan)&arithmetic != 0 {
		f.caps.Subgroup = int(C.ggl_integer(g, subgroupSize))
	}
	return f, nil
}

// find looks up the optional entry points by the names that this version and its
// extensions give them.
func (f *facts) find(g *C.struct_ggl, d dialect, version int, ext map[string]bool) {
	lookup := func(function C.int, name string) bool {
		c := C.CString(name)
		defer C.free(unsafe.Pointer(c))
		return C.ggl_find(g, function, c) != 0
	}
	es := d.es == 1
	switch {
	case es && version >= 32, !es && (version >= 45 || ext["GL_KHR_robustness"]):
		lookup(C.GGL_RESET, "glGetGraphicsResetStatus")
	case es && ext["GL_KHR_robustness"]:
		lookup(C.GGL_RESET, "glGetGraphicsResetStatusKHR")
	case es && ext["GL_EXT_robustness"]:
		lookup(C.GGL_RESET, "glGetGraphicsResetStatusEXT")
	case ext["GL_ARB_robustness"]:
		lookup(C.GGL_RESET, "glGetGraphicsResetStatusARB")
	}
	switch {
	case !es && (version >= 44 || ext["GL_ARB_buffer_storage"]):
		f.mapped = lookup(C.GGL_STORAGE, "glBufferStorage")
	case es && ext["GL_EXT_buffer_storage"]:
		f.mapped = lookup(C.GGL_STORAGE, "glBufferStorageEXT")
	}
	if !es {
		lookup(C.GGL_CLEAR, "glClearBufferData")
	}
	name := ""
	switch {
	case !es || version >= 32:
		name = "glTexBufferRange"
	case ext["GL_EXT_texture_buffer"]:
		name = "glTexBufferRangeEXT"
	case ext["GL_OES_texture_buffer"]:
		name = "glTexBufferRangeOES"
	}
	if name != "" && lookup(C.GGL_TEXELS, name) {
		f.limits.Texels = int64(C.ggl_integer(g, texelsMost))
		f.limits.OffsetAlign = max(f.limits.OffsetAlign, int64(C.ggl_integer(g, texelsAlign)))
	}
	if ext["GL_EXT_memory_object"] && lookup(C.GGL_UUID, "glGetUnsignedBytei_vEXT") {
		var card, driver, none [16]byte
		C.ggl_uuid(g, (*C.uchar)(&card[0]), (*C.uchar)(&driver[0]))
		if card != none {
			f.uuid = hex.EncodeToString(card[:]) + hex.EncodeToString(driver[:])
		}
	}
	f.clock(g, es, ext, lookup)
}

// clock settles how commands are timed. Software renderers run a dispatch inside the
// call, where elapsed-time queries do not see it; the host's clock does.
func (f *facts) clock(g *C.struct_ggl, es bool, ext map[string]bool, lookup func(C.int, string) bool) {
	switch {
	case isSoftware(f.renderer):
		f.timing = C.GGL_CLOCK
	case !es && C.ggl_timer_works(g) != 0 && lookup(C.GGL_QUERY, "glGetQueryObjectui64v"):
		f.timing = C.GGL_QUERIES
	case es && ext["GL_EXT_disjoint_timer_query"] && C.ggl_timer_works(g) != 0 && lookup(C.GGL_QUERY, "glGetQueryObjectui64vEXT"):
		f.timing, f.disjoint = C.GGL_QUERIES, true
	}
	f.caps.Timer = f.timing != C.GGL_UNTIMED
}

// bufferMost is the largest buffer asked of a driver: OpenGL has no query for it, the
// smallest driver known (V3D) gives 1 GiB, and Mesa counts sizes in 32 bits.
const bufferMost = 1 << 30

func limits(g *C.struct_ggl) device.Limits {
	l := device.Limits{
		StorageBuffers: int(min(C.ggl_integer(g, storageBlocks), C.ggl_integer(g, storageBindings), C.GGL_BINDINGS)),
		BindingBytes:   int64(C.ggl_integer(g, storageBytes)),
		OffsetAlign:    max(4, int64(C.ggl_integer(g, storageAlign))),
		Invocations:    int(min(C.ggl_integer(g, groupTotal), C.ggl_integer_at(g, groupSize, 0))),
		SharedBytes:    int(C.ggl_integer(g, sharedBytes)),
		ParamBytes:     int(C.ggl_integer(g, uniformBytes)),
	}
	l.BufferBytes = max(bufferMost, min(l.BindingBytes, 4<<30-1<<16))
	for i := range l.Groups {
		l.Groups[i] = int64(C.ggl_integer_at(g, groupCount, C.GLuint(i)))
	}
	return l
}
