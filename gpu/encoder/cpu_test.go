package encoder_test

import (
	"testing"

	"ganglion/gpu/cpu"
	"ganglion/gpu/ops"
)

func init() {
	backends["cpu"] = func(t testing.TB) ops.Backend {
		b, err := cpu.New(cpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}
