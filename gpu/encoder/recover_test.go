package encoder_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"ganglion/gpu/encoder"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
)

// An encoder whose device fails goes on with the next, and gives the same rows there.
func TestGoesOnElsewhere(t *testing.T) {
	ctx := context.Background()
	picture := noise(64, 64)
	rows := func(e *encoder.Encoder) ([]float32, error) {
		p, err := e.EncodePicture(ctx, picture, encoder.PictureOptions{})
		if err != nil {
			return nil, err
		}
		return p[0].Rows, nil
	}
	want, err := rows(open(t, ref.New(), ops.Exact, "qwen3vl-mmproj.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		kind   opstest.Call
		err    error
		others int // backends after it, the first of which takes nothing
		lost   bool
	}{
		{"lost while it runs", opstest.CallRun, ops.ErrDeviceLost, 2, false},
		{"out of memory", opstest.CallCompile, ops.ErrOutOfMemory, 2, false},
		{"nothing takes it", opstest.CallRun, ops.ErrDeviceLost, 1, true},
		{"nothing is left", opstest.CallRun, ops.ErrDeviceLost, 0, true},
		{"no fault of the device", opstest.CallRun, ops.ErrPlan, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			others := []ops.Backend{&opstest.Faulty{Backend: ref.New(), Kind: opstest.CallLoad, At: 1, Err: ops.ErrDeviceLost}, ref.New()}[:tt.others]
			asked := 0
			e, err := encoder.Open(ctx, encoder.Config{
				Path: filepath.Join("testdata/models", "qwen3vl-mmproj.gguf"), Numerics: ops.Exact,
				Backend: &opstest.Faulty{Backend: ref.New(), Kind: tt.kind, At: 1, Err: tt.err},
				Recover: func(_ error, failures int) (ops.Backend, error) {
					if asked++; failures != asked {
						t.Errorf("failure %d is told as %d", asked, failures)
					}
					if failures > len(others) {
						return nil, nil
					}
					return others[failures-1], nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			got, err := rows(e)
			if tt.lost {
				if !errors.Is(err, tt.err) {
					t.Errorf("it gave %v", err)
				}
				e.Memory()
				if _, err := rows(e); tt.err == ops.ErrDeviceLost && !errors.Is(err, tt.err) {
					t.Errorf("again it gave %v", err)
				}
				return
			}
			if err != nil || !slices.Equal(got, want) || asked != 2 {
				t.Errorf("%d rows, %v, after %d failures", len(got), err, asked)
			}
			if again, err := rows(e); err != nil || !slices.Equal(again, want) || asked != 2 {
				t.Errorf("again: %v", err)
			}
			if i := e.Info(); i.Backend != ref.New().Name() {
				t.Errorf("it says that it runs on %s", i.Backend)
			}
		})
	}
}
