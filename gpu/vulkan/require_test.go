package vulkan

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// missing skips the test for what the machine lacks, or fails it where Vulkan is
// required.
func missing(t testing.TB, what string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("GANGLION_REQUIRE"), ","), "vulkan") {
		t.Fatalf("GANGLION_REQUIRE asks for Vulkan: %s", what)
	}
	t.Skip(what)
}
