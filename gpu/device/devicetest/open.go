package devicetest

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/device"
)

// Open opens a device that is closed at the end of the test. Where there is no driver of the
// API the test is skipped, unless GANGLION_REQUIRE names the API. A message of a validation
// layer fails the test.
func Open(t testing.TB, api string, open func() (device.Device, error)) device.Device {
	t.Helper()
	d, err := open()
	if errors.Is(err, device.ErrUnsupported) && !slices.Contains(strings.Split(os.Getenv("GANGLION_REQUIRE"), ","), api) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if v, ok := d.(interface{ Messages() []string }); ok {
			for _, m := range v.Messages() {
				t.Errorf("validation: %s", m)
			}
		}
	})
	return d
}
