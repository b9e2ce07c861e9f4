package web

import (
	"strings"
	"testing"

	"ganglion/appliance/appliancetest"
	"ganglion/web/api"
)

// A device that was set aside makes the status "degraded" and not an error: a token can
// be produced. A software renderer that nobody asked for is nothing to warn of.
func TestHealthTellsOfQuarantinedDevices(t *testing.T) {
	for _, tt := range []struct{ state, status string }{{"available", "ok"}, {"software", "ok"}, {"in use", "ok"}, {"quarantined", "degraded"}} {
		devices := func() []api.Device {
			return []api.Device{{Name: "Card", Backend: "vulkan", State: tt.state, Note: "it hangs"}}
		}
		b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{}), config: Config{Devices: devices}})
		r := b.do("GET", "/health", "")
		h := parse[api.Health](t, r.body)
		if r.status != 200 || h.Status != tt.status || (len(h.Degraded) == 1) != (tt.status == "degraded") {
			t.Errorf("%s: %d %s", tt.state, r.status, r.body)
		}
		if tt.status == "degraded" && !strings.Contains(h.Degraded[0], "Card through vulkan is quarantined: it hangs") {
			t.Errorf("%q", h.Degraded)
		}
	}
}
