//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ganglion/gpu/device/devicetest"
)

// The program links no library of a GPU API, and runs a model where none can be opened; what
// asks for a GPU is told that there is none.
func TestStartsWithoutGPULibraries(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads an ELF file and shadows libraries by LD_LIBRARY_PATH")
	}
	binary, home, shadows := binaryPath(t), t.TempDir(), t.TempDir()
	devicetest.NothingIsLinked(t, binary)
	for _, name := range []string{"libGL.so.1", "libOpenGL.so.0", "libGLESv2.so.2", "libEGL.so.1", "libEGL.so", "libvulkan.so.1", "libvulkan.so"} {
		if err := os.WriteFile(filepath.Join(shadows, name), []byte("no library"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ganglion := func(args ...string) (string, error) {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "LD_LIBRARY_PATH="+shadows)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := ganglion("run", "--model", tinyModel, "--temperature", "0", "-n", "4", "The capital"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, backend := range []string{"vulkan", "gl", "gles"} {
		out, err := ganglion("run", "--model", tinyModel, "--backend", backend, "-n", "4", "The capital")
		if err == nil || !strings.Contains(out, "there is no such device on this machine") {
			t.Errorf("--backend %s: %v: %s", backend, err, out)
		}
	}
}
