package js

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/plugins/wasm/wasmtest"
)

// TestModuleIsBuiltFromSource: js.wasm is what the sources beside it compile to, with the
// compilers of Debian 12.
func TestModuleIsBuiltFromSource(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles for half a minute")
	}
	missing := func(what string) {
		if wasmtest.Required() {
			t.Fatalf("GANGLION_REQUIRE asks for %s", what)
		}
		t.Skipf("there is no %s", what)
	}
	const version = "clang version 14.0.6"
	if out, err := exec.Command("clang", "--version").Output(); err != nil || !strings.Contains(string(out), version) {
		missing(version)
	}
	for _, tool := range []string{"wasm-ld", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(tool)
		}
	}
	if _, err := os.Stat("/usr/lib/wasm32-wasi/crt1-reactor.o"); err != nil {
		missing("wasi-libc")
	}
	if found, _ := filepath.Glob("/usr/lib/llvm-14/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a"); len(found) == 0 {
		missing("libclang-rt-dev-wasm32")
	}
	dir := t.TempDir()
	if err := unpack("guest/quickjs-ng-0.16.2.tar.gz", dir); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "js.wasm")
	if said, err := exec.Command("bash", "guest/build.sh", dir, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, guest) {
		t.Error("js.wasm is not what guest/build.sh makes")
	}
}

// unpack writes the files of an archive into a folder.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
}
