//go:build cgo

package gl

import (
	"os"
	"runtime"
	"testing"

	"ganglion/gpu/device/devicetest"
)

func TestNothingIsLinked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads an ELF file")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	devicetest.NothingIsLinked(t, self)
}
