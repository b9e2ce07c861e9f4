package gl

import (
	"strings"
	"testing"

	"ganglion/gpu/device"
)

func TestIdentity(t *testing.T) {
	tests := []struct {
		vendor, renderer   string
		software, discrete bool
	}{
		{"Mesa/X.org", "llvmpipe (LLVM 15.0.6, 256 bits)", true, false},
		{"Mesa", "softpipe", true, false},
		{"Google Inc. (Google)", "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device), SwiftShader driver)", true, false},
		{"Microsoft Corporation", "GDI Generic", true, false},
		{"Broadcom", "V3D 4.2", false, false},
		{"Panfrost", "Mali-G52 r1 (Panfrost)", false, false},
		{"freedreno", "FD643", false, false},
		{"Intel", "Mesa Intel(R) UHD Graphics 630 (CFL GT2)", false, false},
		{"Intel", "Mesa Intel(R) Arc(tm) A770 Graphics (DG2)", false, true},
		{"AMD", "AMD Radeon Graphics (radeonsi, renoir, LLVM 15.0.7, DRM 3.54)", false, false},
		{"AMD", "AMD Radeon RX 6800 XT (radeonsi, navi21, LLVM 15.0.7)", false, true},
		{"NVIDIA Corporation", "NVIDIA GeForce RTX 3060/PCIe/SSE2", false, true},
		{"NVIDIA Corporation", "NVIDIA Tegra Orin (nvgpu)/integrated", false, false},
	}
	for _, tt := range tests {
		i := identity{vendor: tt.vendor, renderer: tt.renderer}.info(dialects[device.GLSL430])
		if i.Software != tt.software || i.Discrete != tt.discrete {
			t.Errorf("%s: software %v, discrete %v", tt.renderer, i.Software, i.Discrete)
		}
	}
	one := identity{renderer: "x", version: "1"}.info(dialects[device.GLSL430])
	two := identity{renderer: "x", version: "2"}.info(dialects[device.GLSL430])
	if one.ID == two.ID || !strings.HasPrefix(one.ID, "gl43-") {
		t.Errorf("IDs %q and %q of two drivers", one.ID, two.ID)
	}
}

// Hardware and driver are what a key tells apart, each part of their names; the partner
// changes nothing that counts.
func TestKeyNamesDriverAndDevice(t *testing.T) {
	one := identity{vendor: "v", renderer: "r", version: "1", uuid: "u"}
	for what, tt := range map[string]struct {
		change func(*identity)
		same   bool
	}{
		"memory":   {func(i *identity) { i.memory = 1 }, true},
		"vendor":   {func(i *identity) { i.vendor = "w" }, false},
		"renderer": {func(i *identity) { i.renderer = "s" }, false},
		"version":  {func(i *identity) { i.version = "2" }, false},
		"uuid":     {func(i *identity) { i.uuid = "x" }, false},
		"a border": {func(i *identity) { i.vendor, i.renderer = "vr", "" }, false},
	} {
		other := one
		tt.change(&other)
		if got := other.key() == one.key(); got != tt.same {
			t.Errorf("another %s: the same key %v, want %v", what, got, tt.same)
		}
	}
}
