package compute

import (
	"os"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/tensor"
)

// Products by tiles pass the suite of gpu/ops inside the portable floor, tiles of every
// size. Formats differ in how weights are unpacked, which is the same for products by rows;
// groups of 16 and 32 columns, with minima and without, and floats are each done by one
// driver. GANGLION_GPU_ALL does all formats on each.
func TestTiledProducts(t *testing.T) {
	t.Parallel()
	profiles := devicetest.Profiles()
	floor := profiles[slices.IndexFunc(profiles, func(p devicetest.Profile) bool { return p.Name == "webgpu-floor" })]
	for _, tt := range []struct {
		driver driver
		groups int // that are wanted: 1 makes tiles large
		only   []string
	}{
		{drivers[0], 1, []string{"matmul/Q4_K", "matmul/F32"}},
		{drivers[1], tiledGroups, []string{"matmul/Q6_K", "matmul/F16"}},
		{drivers[3], 1, []string{"matmul/Q2_K", "matmul/BF16"}},
	} {
		t.Run(tt.driver.name, func(t *testing.T) {
			t.Parallel()
			limited := floor.Wrap(tt.driver.device(t))
			open := func(t *testing.T) ops.Backend {
				b := New(devicetest.AsHardware(limited), Options{Shared: true, Deadline: 2 * time.Minute})
				b.tiles = tiling{2, tt.groups}
				return b
			}
			only := tt.only
			if raceDetector {
				only = only[:1]
			}
			if os.Getenv("GANGLION_GPU_ALL") != "" {
				only = []string{"matmul/", "lowrank/", "model"}
			}
			opstest.Run(t, open, opstest.Only(only...))
			for _, v := range limited.Violations() {
				t.Error(v)
			}
		})
	}
}

// Tiles are for many rows on what is no renderer, and are as large as leaves a GPU enough
// of them.
func TestTilesAreForManyRows(t *testing.T) {
	for _, tt := range []struct {
		rows, tiles     int
		typ             tensor.Type
		software        bool
		kernel          string
		wg, each, xRows uint32
	}{
		{8, 64, tensor.Q8_0, false, "matmul_q8_0", 128, 1, 4},
		{9, 64, tensor.Q8_0, false, "matmul_q8_0_tiled", 64, 2, 16},
		{64, 256, tensor.Q8_0, false, "matmul_q8_0_tiled", 256, 2, 64},
		{512, 20, tensor.Q8_0, false, "matmul_q8_0_tiled", 256, 2, 64},
		{64, 20, tensor.Q8_0, false, "matmul_q8_0_tiled", 64, 2, 16},
		{64, 20, tensor.F16, false, "matmul_f16_tiled", 128, 1, 16},
		{64, 20, tensor.Q8_0, true, "matmul_q8_0", 32, 4, 4},
	} {
		dev := newFake()
		dev.software = tt.software
		b := New(dev, Options{})
		l := &lowering{rt: &Runtime{b: b, opts: ops.Options{Numerics: ops.Exact}}}
		f, err := formatOf(&ops.Weight{Type: tt.typ}, false)
		if err != nil {
			t.Fatal(err)
		}
		p := &product{m: &matrix{format: f}, n: tt.rows}
		kernel := l.productKernel(p, window{region: region{mem: &memory{}}})
		wg, each, xRows := p.constants(b, tt.tiles, tt.tiles, kernel)
		if kernel != tt.kernel || wg != tt.wg || each != tt.each || xRows != tt.xRows {
			t.Errorf("%d rows, %d tiles of %s, software %v: %s %d %d %d, want %s %d %d %d", tt.rows, tt.tiles, tt.typ, tt.software,
				kernel, wg, each, xRows, tt.kernel, tt.wg, tt.each, tt.xRows)
		}
	}
}
