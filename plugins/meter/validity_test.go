package meter

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// TestValidityAgrees changes bytes of valid modules and asks both our reader and the
// engine's about the result. Two readers that see different instructions in the same
// bytes would be a way past the meter: what we take, the engine takes, and what we refuse
// it refuses too, but for what is listed in lenient.
func TestValidityAgrees(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithDebugInfoEnabled(false))
	defer r.Close(ctx)
	rng := rand.New(rand.NewPCG(3, 4))
	var both, neither, shown int
	ours, n := 0, uint64(*randomModules/4)
	if raceDetector {
		n /= 10
	}
	for seed := range n {
		valid := wasmtest.Random(seed)
		for range 10 {
			file := append([]byte(nil), valid...)
			for range 1 + rng.IntN(2) {
				at := rng.IntN(len(file))
				switch rng.IntN(4) {
				case 0:
					file[at] = byte(rng.Uint32())
				case 1:
					file[at]++
				case 2:
					file[at] ^= 1 << rng.IntN(8)
				default:
					file[at] = []byte{0x0b, 0x23, 0x24, 0x40, 0xfc, 0xfd, 0x80, 0x7f}[rng.IntN(8)]
				}
			}
			m, err := wasm.Parse(file)
			if err == nil {
				err = wasm.Validate(m)
			} else if errors.Is(err, wasm.ErrLimit) || m == nil && !errors.Is(err, wasm.ErrInvalid) {
				neither++
				continue // the engine might allocate what the file claims
			}
			named, err2 := wasm.DropCustom(file, "name") // which the rewriter makes anew
			if err2 != nil {
				named = file
			}
			c, theirs := r.CompileModule(ctx, named)
			if theirs == nil {
				c.Close(ctx)
			}
			switch {
			case err == nil && theirs == nil:
				both++
			case err != nil && theirs != nil:
				neither++
			case errors.Is(err, wasm.ErrLimit):
			case theirs == nil && slices.ContainsFunc(lenient, func(l string) bool { return strings.Contains(err.Error(), l) }):
				ours++
			default:
				if shown++; shown < 20 {
					t.Errorf("seed %d: we say %v, the engine %v", seed, err, theirs)
				}
			}
		}
	}
	t.Logf("%d valid for both, %d for neither, %d for the engine alone", both, neither, ours)
}

// lenient is what the engine takes and the specification does not: numbers with bits
// beyond their width, and a select whose operands are not of the type that it names. It
// reads one byte behind the prefix of vector instructions where the format has a number,
// so it takes a relaxed or a padded one for another instruction of another length: the
// way past the meter, if we took them.
var lenient = []string{"number has more than", "type mismatch: opcode 0x1c", "relaxed SIMD", "is padded"}
