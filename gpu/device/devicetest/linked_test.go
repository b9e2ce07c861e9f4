package devicetest

import "testing"

// A library of any API is found among others, and a file without libraries does not pass.
func TestLinkedLibrariesAreFound(t *testing.T) {
	if err := linked([]string{"libc.so.6", "libdl.so.2", "libm.so.6"}); err != nil {
		t.Error(err)
	}
	for _, l := range []string{"libGL.so.1", "libGLESv2.so.2", "libGLX.so.0", "libEGL.so.1", "libOpenGL.so.0", "libvulkan.so.1"} {
		if linked([]string{"libc.so.6", l}) == nil {
			t.Errorf("%s is not found", l)
		}
	}
	if linked(nil) == nil {
		t.Error("a file without libraries passes")
	}
}
