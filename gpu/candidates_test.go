package gpu

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A system without a device file of a GPU has none; nothing else in the folder counts.
func TestHardwareHere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("device files are asked for on Linux alone")
	}
	for file, want := range map[string]bool{"null": false, "dri/card0": true, "nvidia0": true, "nvidiactl": false, "kgsl-3d0": true, "mali0": true, "dxg": true} {
		dev := t.TempDir()
		path := filepath.Join(dev, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := hardwareHere(dev); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

// Where the system shows no GPU nobody is asked.
func TestNobodyIsAskedWithoutHardware(t *testing.T) {
	if hardwareHere("/dev") {
		t.Skip("there may be a GPU here")
	}
	m := unprobed(t, nil)
	if got := m.Candidates(context.Background(), Choice{}); len(got) > 0 || len(m.Known().Devices) > 0 {
		t.Errorf("candidates %v, known %v", got, m.Known().Devices)
	}
}
