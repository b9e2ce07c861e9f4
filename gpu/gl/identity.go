package gl

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"ganglion/gpu/device"
)

// identity is what a context says about the hardware behind it.
type identity struct {
	vendor, renderer, version string // GL_VENDOR, GL_RENDERER, GL_VERSION
	number                    string // "4.5"
	uuid                      string // of device and driver, "" where the driver has none
	place                     string
	memory                    int64
}

// info turns an identity into what people read. The ID holds the driver's version, so
// that what is remembered of a device is forgotten with an update.
func (i identity) info(d dialect) device.Info {
	key := i.key()
	if i.uuid == "" && strings.HasPrefix(i.place, "device /") {
		key += i.place // tells two equal cards apart
	}
	sum := sha256.Sum256([]byte(key))
	software := isSoftware(i.renderer)
	return device.Info{
		API:      d.api,
		Version:  i.number,
		Name:     i.renderer,
		Vendor:   i.vendor,
		Driver:   i.version,
		ID:       d.name + "-" + hex.EncodeToString(sum[:8]),
		Software: software,
		Discrete: !software && isDiscrete(i.vendor, i.renderer),
		Memory:   i.memory,
	}
}

// key is equal for contexts that drive the same hardware by the same driver.
func (i identity) key() string {
	return strings.Join([]string{i.vendor, i.renderer, i.version, i.uuid}, "\x00")
}

// softwareNames are what renderers on the CPU call themselves in GL_RENDERER: Mesa's
// three, Google's, and those of Windows and macOS.
var softwareNames = []string{
	"llvmpipe", "softpipe", "swrast", "software rasterizer", "swiftshader",
	"microsoft basic render", "gdi generic", "apple software renderer",
}

func isSoftware(renderer string) bool {
	r := strings.ToLower(renderer)
	for _, s := range softwareNames {
		if strings.Contains(r, s) {
			return true
		}
	}
	return false
}

// OpenGL does not tell whether a device has memory of its own; its name does. What is
// not listed counts as sharing the host's.
var (
	tegra    = regexp.MustCompile(`(?i)tegra|orin|xavier`)
	discrete = regexp.MustCompile(`(?i)radeon (rx|pro|vii|r9|hd)|firepro|instinct|arc(\(tm\))? [ab]\d{3}`)
)

func isDiscrete(vendor, renderer string) bool {
	if strings.Contains(strings.ToLower(vendor), "nvidia") {
		return !tegra.MatchString(renderer)
	}
	return discrete.MatchString(renderer)
}
