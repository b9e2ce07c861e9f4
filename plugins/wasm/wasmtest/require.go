package wasmtest

import (
	"os"
	"slices"
	"strings"
)

// Required tells whether GANGLION_REQUIRE asks for the compilers of plugins: what a missing
// one keeps from running is then a failure.
func Required() bool {
	return slices.Contains(strings.Split(os.Getenv("GANGLION_REQUIRE"), ","), "wasm")
}
