// Package sdktest gives tests the examples of the SDKs, as modules.
package sdktest

import (
	"context"
	"errors"
	"os"
	"testing"

	"ganglion/plugins/js"
	"ganglion/plugins/sdk"
	"ganglion/plugins/wasm/wasmtest"
)

// Languages are those that there is an example in, scripts among them.
func Languages() []string { return append(sdk.Languages(), "js") }

// Example is the module of a language's example, for tests of packages in plugins. It skips
// as Built does.
func Example(t testing.TB, lang string) []byte {
	t.Helper()
	if lang != "js" {
		file, err := sdk.Build(context.Background(), "../sdk/"+lang+"/example")
		return Built(t, file, err)
	}
	script, err := os.ReadFile("../js/example/top-a.js")
	if err != nil {
		t.Fatal(err)
	}
	file, err := js.Module(script)
	return Built(t, file, err)
}

// Built is a module that was made from a source. Where its compiler is missing the test is
// skipped, unless GANGLION_REQUIRE asks for the compilers of plugins.
func Built(t testing.TB, file []byte, err error) []byte {
	t.Helper()
	switch {
	case errors.Is(err, sdk.ErrNoToolchain) && !wasmtest.Required():
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return file
}
