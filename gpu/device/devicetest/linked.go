package devicetest

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// drivenBy are the libraries of GPU APIs by the beginnings of their names.
var drivenBy = []string{"libGL", "libEGL", "libOpenGL", "libvulkan"} // libGLESv2 and libGLX too

// NothingIsLinked reports libraries of GPU APIs that an ELF file wants when it is started: it
// must start where there are none.
func NothingIsLinked(t testing.TB, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if err := linked(libraries); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// linked is an error where libraries of GPU APIs are among a file's, or none at all, for a
// file without any says nothing.
func linked(libraries []string) error {
	if len(libraries) == 0 {
		return fmt.Errorf("no library is linked: the test tests nothing")
	}
	for _, l := range libraries {
		if slices.ContainsFunc(drivenBy, func(name string) bool { return strings.HasPrefix(l, name) }) {
			return fmt.Errorf("%s is linked", l)
		}
	}
	return nil
}
