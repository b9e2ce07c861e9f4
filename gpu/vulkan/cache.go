//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"ganglion/gpu/device/cachedir"
)

// pipelineCache is the driver's cache of compiled pipelines and its file. The file is
// for one device, driver and set of kernels; one that is damaged or of another driver is
// ignored and written anew. Drivers trust what they are given, so the folder is the
// user's alone and the file carries a checksum.
type pipelineCache struct {
	c      C.VkPipelineCache
	folder string // "" = nothing is kept
	name   string // of the file
	family string // how the names of the device's files for any driver and kernels begin
	header []byte
	sum    [sha256.Size]byte // of the data on disk
	grown  bool              // kernels were compiled since the last save
}

const (
	cacheMagic = "ganglion pipelines 1\n"
	// cacheMax bounds what is read: some hundred kernels take a few megabytes.
	cacheMax = 256 << 20
)

func newPipelineCache(p *C.gv_properties, o Options) pipelineCache {
	kernels := sha256.Sum256([]byte(o.Kernels))
	driver := C.GoBytes(unsafe.Pointer(&p.driver_uuid), C.int(len(p.driver_uuid)))
	id := C.GoBytes(unsafe.Pointer(&p.cache_uuid), C.int(len(p.cache_uuid)))
	h := []byte(cacheMagic)
	for _, n := range []C.uint32_t{p.vendor, p.device, p.driver_version} {
		h = binary.LittleEndian.AppendUint32(h, uint32(n))
	}
	h = append(append(append(h, driver...), id...), kernels[:]...)
	c := pipelineCache{header: h, family: fmt.Sprintf("%04x-%04x-", p.vendor, p.device)}
	key := sha256.Sum256(h)
	c.name = fmt.Sprintf("%s%x.pipelines", c.family, key[:12])
	if o.CacheDir != "" {
		c.folder = filepath.Join(o.CacheDir, "vulkan")
	}
	return c
}

// open makes the driver's cache, filled from the file when there is a good one.
func (c *pipelineCache) open(d *Device) error {
	data := c.load()
	if len(data) > 0 && failure("cache", C.gv_cache_create(d.c, unsafe.Pointer(&data[0]), C.size_t(len(data)), &c.c)) == nil {
		c.sum = sha256.Sum256(data)
		return nil
	}
	return d.check("cache", C.gv_cache_create(d.c, nil, 0, &c.c))
}

func (c *pipelineCache) close(d *Device) {
	C.gv_cache_destroy(d.c, c.c)
	c.c = 0
}

// load reads the file; nil when there is none that can be trusted.
func (c *pipelineCache) load() []byte {
	if c.folder == "" {
		return nil
	}
	f, err := cachedir.Open(c.folder, filepath.Join(c.folder, c.name))
	if err != nil {
		return nil
	}
	defer f.Close()
	file, err := io.ReadAll(io.LimitReader(f, cacheMax+1))
	if err != nil || len(file) > cacheMax {
		return nil
	}
	return c.decode(file)
}

// decode gives the data of a file whose header and checksum are right.
func (c *pipelineCache) decode(file []byte) []byte {
	rest, ok := bytes.CutPrefix(file, c.header)
	if !ok || len(rest) < sha256.Size {
		return nil
	}
	data := rest[sha256.Size:]
	if sha256.Sum256(data) != [sha256.Size]byte(rest) {
		return nil
	}
	return data
}

// encode puts the header and the checksum before the data.
func (c *pipelineCache) encode(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(append(bytes.Clone(c.header), sum[:]...), data...)
}

// save writes the file when kernels were compiled that it does not have. A cache that
// cannot be kept costs time at the next start and nothing else, so it is only logged.
func (c *pipelineCache) save(d *Device) {
	if !c.grown || c.folder == "" || d.Health() != nil {
		return
	}
	c.grown = false
	if err := c.write(d); err != nil {
		slog.Warn("vulkan: compiled pipelines are not kept", "folder", c.folder, "error", err)
	}
}

func (c *pipelineCache) write(d *Device) error {
	data, err := c.data(d)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if len(data) == 0 || sum == c.sum {
		return nil
	}
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return err
	}
	if err := cachedir.Private(c.folder); err != nil {
		return err
	}
	if err := replace(filepath.Join(c.folder, c.name), c.encode(data)); err != nil {
		return err
	}
	c.sum = sum
	c.prune()
	return nil
}

// data asks the driver for its cache.
func (c *pipelineCache) data(d *Device) ([]byte, error) {
	var n C.size_t
	if err := d.check("cache", C.gv_cache_data(d.c, c.c, &n, nil)); err != nil || n == 0 {
		return nil, err
	}
	if n > cacheMax/2 {
		return nil, fmt.Errorf("vulkan: cache: the driver's has %d bytes", n)
	}
	data := make([]byte, n)
	err := d.check("cache", C.gv_cache_data(d.c, c.c, &n, unsafe.Pointer(&data[0])))
	return data[:n], err
}

// prune removes the device's files for other drivers and kernels.
func (c *pipelineCache) prune() {
	all, err := os.ReadDir(c.folder)
	if err != nil {
		return
	}
	for _, f := range all {
		if name := f.Name(); name != c.name && strings.HasPrefix(name, c.family) && strings.HasSuffix(name, ".pipelines") {
			os.Remove(filepath.Join(c.folder, name))
		}
	}
}

// replace writes a file whole or not at all.
func replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
