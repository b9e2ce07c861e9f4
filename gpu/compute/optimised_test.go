package compute

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/ops"
)

// Tests on software renderers usually have them compile quickly (light_renderers of
// build.sh): without optimising, for vectors of 128 bits. Users have them as Mesa makes
// them, and optimising is what might join or reorder the operations of exact mode.

// lightly are the variables by which renderers compile quickly. Drivers read them when they
// are loaded, so a child process does without.
var lightly = []string{"GALLIVM_PERF", "LP_NATIVE_VECTOR_WIDTH"}

// asUsersHaveThem is set in the child.
const asUsersHaveThem = "GANGLION_TEST_AS_USERS_HAVE_THEM"

// A small model has the processor's bits on renderers that optimise: on Vulkan in the form
// that GPUs get and on OpenGL in that of renderers, with GANGLION_GPU_ALL in both on each.
func TestOptimisedRenderers(t *testing.T) {
	if os.Getenv(asUsersHaveThem) != "" {
		optimised(t)
		return
	}
	t.Parallel()
	for _, d := range plain {
		d.device(t) // skips where there is none
	}
	out, err := optimisedChild(t)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// The partner: names of renderers tell the width of vectors, so one that is told to be
	// narrow is seen to be.
	narrow, _ := optimisedChild(t, "LP_NATIVE_VECTOR_WIDTH=128", asUsersHaveThem+"=name")
	if !strings.Contains(narrow, "128 bits") || strings.Contains(out, "128 bits") && strings.Contains(processorName(t), "avx") {
		t.Errorf("the child's renderers:\n%s\ntold to be narrow:\n%s", out, narrow)
	}
}

// optimisedChild runs the test without what makes renderers compile quickly, and with no
// kernels that were compiled so.
func optimisedChild(t *testing.T, more ...string) (string, error) {
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestOptimisedRenderers$")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(lightly, name)
	})
	cmd.Env = append(append(cmd.Env, "MESA_SHADER_CACHE_DIR="+t.TempDir(), asUsersHaveThem+"=1"), more...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// optimised is the child's side.
func optimised(t *testing.T) {
	set := archtest.Golden(t)
	path, tokens := set.Path(t, "qwen3-dense"), set.Tokens[:3]
	for _, d := range plain {
		t.Run(d.name, func(t *testing.T) {
			dev := d.device(t)
			t.Log(dev.Info().Name)
			if os.Getenv(asUsersHaveThem) == "name" {
				return
			}
			c, err := cpu.New(cpu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			want := enginetest.Logits(t, c, path, ops.Exact, tokens, 1)
			for form, dev := range map[string]device.Device{"renderer": dev, "gpu": devicetest.AsHardware(dev)} {
				if os.Getenv("GANGLION_GPU_ALL") == "" && (form == "gpu") != (d.name == "vulkan") {
					continue
				}
				b := New(dev, Options{Shared: true, Deadline: 5 * time.Minute})
				defer b.Close()
				if !archtest.SameBits(enginetest.Logits(t, b, path, ops.Exact, tokens, 1), want) {
					t.Errorf("%s: not the processor's bits", form)
				}
			}
		})
	}
}

// processorName is what the processor backend says of itself, in small letters.
func processorName(t *testing.T) string {
	t.Helper()
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return strings.ToLower(c.Caps().Device)
}
