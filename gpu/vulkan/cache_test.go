//go:build cgo

package vulkan

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// compileOne opens a device, compiles a kernel and records a program, as a start does.
// It says whether the cache was filled from the file.
func compileOne(t *testing.T, o Options) bool {
	t.Helper()
	d := openTest(t, o)
	filled := d.cache.sum != [len(d.cache.sum)]byte{}
	if _, err := d.NewKernel(copyShader(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewProgram(nil, device.ProgramOptions{}); err != nil {
		t.Fatal(err)
	}
	return filled
}

func onlyFile(t *testing.T, folder string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "vulkan", "*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("files %q, want one (%v)", all, err)
	}
	return all[0]
}

func TestPipelinesAreKept(t *testing.T) {
	o := Options{CacheDir: t.TempDir(), Kernels: "a"}
	if compileOne(t, o) {
		t.Error("a cache from nothing")
	}
	first := onlyFile(t, o.CacheDir) // before the device is closed
	s, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Stat(filepath.Dir(first))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && (s.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700) {
		t.Errorf("file %v, folder %v, want them private", s.Mode(), folder.Mode())
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(first, old, old); err != nil {
		t.Fatal(err)
	}
	if !compileOne(t, o) {
		t.Error("the file was not used")
	}
	if s, err := os.Stat(onlyFile(t, o.CacheDir)); err != nil || time.Since(s.ModTime()) < time.Minute {
		t.Errorf("a cache without news was written again (%v)", err)
	}
	o.Kernels = "b"
	if compileOne(t, o) {
		t.Error("pipelines of other kernels were used")
	}
	if onlyFile(t, o.CacheDir) == first {
		t.Error("the file of other kernels has the same name")
	}
}

func TestDamagedCacheIsIgnored(t *testing.T) {
	o := Options{CacheDir: t.TempDir()}
	compileOne(t, o)
	name := onlyFile(t, o.CacheDir)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	for what, data := range map[string][]byte{
		"empty": {}, "cut in the header": good[:30], "cut in the data": good[:len(good)-1], "longer": append(bytes.Clone(good), 0),
		"another format": flipped(0), "another driver": flipped(len(cacheMagic) + 8), "other kernels": flipped(len(cacheMagic) + 12 + 40),
		"another checksum": flipped(len(cacheMagic) + 12 + 64 + 3), "another byte": flipped(len(good) - 1),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if compileOne(t, o) {
			t.Errorf("%s: the file was used", what)
		}
		if now, err := os.ReadFile(name); err != nil || len(now) != len(good) {
			t.Errorf("%s: %d bytes were written anew, want %d (%v)", what, len(now), len(good), err)
		}
	}
	if !compileOne(t, o) {
		t.Error("the file that was written anew is not used")
	}
}

// A folder that others may write to could hold anything.
func TestCacheNeedsPrivateFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders have no such permissions")
	}
	o := Options{CacheDir: t.TempDir()}
	compileOne(t, o)
	folder := filepath.Join(o.CacheDir, "vulkan")
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if compileOne(t, o) {
		t.Error("a file from a folder of everyone was used")
	}
	link := Options{CacheDir: t.TempDir()}
	if err := os.Symlink(folder, filepath.Join(link.CacheDir, "vulkan")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if compileOne(t, link) {
		t.Error("a file from behind a link was used")
	}
	if !compileOne(t, o) {
		t.Error("the private folder is not used")
	}
	// Where nothing can be kept the device works all the same.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	compileOne(t, Options{CacheDir: file})
}

// Whatever says that another driver or device compiled is a part of the file's name and of
// its header; the partner changes nothing.
func TestCacheNamesDriverAndDevice(t *testing.T) {
	d := openTest(t, Options{})
	one := newPipelineCache(&d.props, Options{Kernels: "a"})
	same := newPipelineCache(&d.props, Options{Kernels: "a"})
	if same.name != one.name || !bytes.Equal(same.header, one.header) {
		t.Error("the same device has another cache")
	}
	vendor, number, version, driver, pipelines := d.props, d.props, d.props, d.props, d.props
	vendor.vendor++
	number.device++
	version.driver_version++
	driver.driver_uuid[15]++
	pipelines.cache_uuid[15]++
	for what, c := range map[string]pipelineCache{
		"vendor": newPipelineCache(&vendor, Options{Kernels: "a"}), "device": newPipelineCache(&number, Options{Kernels: "a"}),
		"driver version": newPipelineCache(&version, Options{Kernels: "a"}), "driver UUID": newPipelineCache(&driver, Options{Kernels: "a"}),
		"pipeline cache UUID": newPipelineCache(&pipelines, Options{Kernels: "a"}), "kernels": newPipelineCache(&d.props, Options{Kernels: "b"}),
	} {
		if c.name == one.name || bytes.Equal(c.header, one.header) {
			t.Errorf("another %s has the same cache", what)
		}
	}
}
