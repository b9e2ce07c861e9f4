package main

import (
	"errors"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// policy says which of our packages each package imports: cmd → web, storage →
// appliance → gpu/engine, plugins/sampling → … A line lists what is imported, no more
// and no less, so that a new import shows in the change that brings it. A new package
// adds its line here. "cgo" marks the leaf packages that may hold C.
const policy = `
.:
gpu/tensor:
gpu/gguf: gpu/tensor
gpu/gguf/gguftest: gpu/tensor
gpu/gguf/synthetic: gpu/tensor
gpu/archtest:
gpu/tokenizer:
gpu/cputime:
gpu/device:
gpu/device/cachedir:
gpu/device/devicetest: gpu/device
gpu/device/watch: gpu/device
gpu/gl: cgo gpu/device gpu/device/cachedir
gpu/vulkan: cgo gpu/device gpu/device/cachedir
gpu/kernels: gpu/device gpu/kernels/include
gpu/kernels/include:
gpu/ops: gpu/tensor plugins/rowstats
gpu/ops/ref: gpu/ops gpu/tensor plugins/rowstats
gpu/ops/opstest: gpu/ops gpu/ops/ref gpu/tensor plugins/rowstats
gpu/cpu: cgo gpu/ops gpu/tensor plugins/rowstats
gpu/compute: gpu/device gpu/kernels gpu/ops gpu/tensor plugins/rowstats
gpu/split: gpu/ops gpu/tensor
gpu/phase: gpu/ops
gpu/probe: gpu/device gpu/ops gpu/ops/ref gpu/tensor plugins/rowstats
gpu/kvcache: gpu/ops
gpu/mel:
gpu/pixel:
gpu/model: gpu/ops gpu/gguf gpu/tensor
gpu/encoder: gpu/gguf gpu/mel gpu/ops gpu/pixel gpu/tensor
gpu/encoder/encodertest: gpu/gguf/gguftest gpu/tensor
gpu/engine/enginetest: gpu/engine gpu/ops
gpu/engine: gpu/model gpu/kvcache gpu/tokenizer gpu/ops gpu/gguf
gpu: gpu/ops gpu/ops/ref gpu/cpu gpu/compute gpu/device gpu/device/watch gpu/gl gpu/kernels gpu/phase gpu/probe gpu/split gpu/vulkan
plugins/abi:
plugins/host: plugins/abi plugins/meter plugins/rowstats plugins/sampling plugins/wasm
plugins/meter: plugins/wasm
plugins/registry: plugins/abi plugins/host plugins/sign
plugins/pipeline: plugins/abi plugins/sampling
plugins/pipeline/pipelinetest: plugins/abi plugins/pipeline
plugins/plugintest: plugins/abi plugins/host plugins/pipeline plugins/rowstats plugins/sampling plugins/wasm
plugins/rowstats:
plugins/sampling: plugins/rowstats
plugins/tryout: plugins/abi plugins/host plugins/pipeline plugins/rowstats plugins/sampling
plugins/sign: plugins/abi plugins/wasm
plugins/wasm:
plugins/wasm/wasmtest: plugins/wasm
plugins/builtin:
plugins/js: plugins/wasm
plugins/sdk: plugins/wasm
plugins/sdk/sdktest: plugins/js plugins/sdk plugins/wasm/wasmtest
appliance: appliance/draft appliance/media/film appliance/media/picture appliance/media/sound gpu/encoder gpu/engine gpu/ops gpu/pixel gpu/tokenizer plugins/abi plugins/pipeline plugins/sampling
appliance/draft: gpu/engine gpu/ops plugins/sampling
appliance/jsontext:
appliance/media: appliance appliance/jsontext appliance/media/picture appliance/media/sound
appliance/media/picture: gpu/pixel
appliance/media/film: appliance/media/picture gpu/pixel
appliance/media/sound:
appliance/appliancetest: appliance gpu/engine gpu/ops gpu/pixel gpu/tokenizer plugins/abi plugins/pipeline plugins/pipeline/pipelinetest plugins/rowstats
storage: cgo appliance storage/filelock
storage/filelock:
web: appliance appliance/media gpu/engine gpu/tokenizer web/api
web/api: appliance appliance/jsontext appliance/media
web/ui:
cmd/kernelgen: gpu/device gpu/kernels/include
cmd/ganglion: appliance appliance/media appliance/media/film gpu gpu/compute gpu/device gpu/encoder gpu/engine gpu/gguf gpu/gguf/synthetic gpu/kernels gpu/ops gpu/probe gpu/split gpu/tensor gpu/tokenizer plugins/abi plugins/builtin plugins/host plugins/js plugins/pipeline plugins/plugintest plugins/registry plugins/sampling plugins/sdk plugins/sign plugins/tryout plugins/wasm storage storage/filelock web web/api web/ui
`

// below says what the tests of each part of the house may import beside their own
// part: they may look deeper or sideways inside a part, never up or into a neighbour.
var below = map[string][]string{
	"gpu":       {"plugins/rowstats"},
	"plugins":   {},
	"appliance": {"gpu", "plugins"},
	"storage":   {"appliance", "gpu", "plugins"},
	"web":       {"appliance", "gpu", "plugins"},
	"cmd":       {"appliance", "gpu", "plugins", "storage", "web"},
}

type rule struct {
	allowed []string
	cgo     bool
}

func readPolicy() map[string]rule {
	rules := map[string]rule{}
	for line := range strings.Lines(strings.TrimSpace(policy)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		r := rule{}
		for _, w := range strings.Fields(rest) {
			if w == "cgo" {
				r.cgo = true
			} else {
				r.allowed = append(r.allowed, w)
			}
		}
		rules[name] = r
	}
	return rules
}

// offences lists what a package imports or is against the rules.
func offences(rules map[string]rule, name string, imports []string, cgo bool) []string {
	r, known := rules[name]
	if !known {
		return []string{name + " has no line in the policy"}
	}
	var bad []string
	if cgo && !r.cgo {
		bad = append(bad, name+" uses cgo")
	}
	for _, imp := range imports {
		ours, ok := strings.CutPrefix(imp, "ganglion/")
		if ok && !slices.Contains(r.allowed, ours) {
			bad = append(bad, name+" imports "+ours)
		}
	}
	for _, a := range r.allowed {
		if !slices.Contains(imports, "ganglion/"+a) {
			bad = append(bad, name+" does not import "+a+": take it out of the policy")
		}
	}
	return bad
}

// testOffences lists what the tests of a package import against the order of the house.
func testOffences(name string, imports []string) (bad []string) {
	part, _, _ := strings.Cut(name, "/")
	for _, imp := range imports {
		ours, ok := strings.CutPrefix(imp, "ganglion/")
		if !ok {
			continue
		}
		deeper := func(of string) bool { return strings.HasPrefix(ours+"/", of+"/") }
		if !deeper(part) && !slices.ContainsFunc(below[part], deeper) {
			bad = append(bad, "a test of "+name+" imports "+ours)
		}
	}
	return bad
}

func TestImportsPointDown(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	rules, seen := readPolicy(), 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if base := d.Name(); name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "bin" || base == "models") {
			return filepath.SkipDir
		}
		p, err := build.ImportDir(path, 0)
		var none *build.NoGoError
		if errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		seen++
		found := offences(rules, name, p.Imports, len(p.CgoFiles) > 0)
		found = append(found, testOffences(name, append(p.TestImports, p.XTestImports...))...)
		for _, o := range found {
			t.Error(o)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(rules) {
		t.Errorf("%d packages found, the policy has %d lines", seen, len(rules))
	}
}

// The guard can fail.
func TestImportPolicyCatchesOffences(t *testing.T) {
	rules := readPolicy()
	tests := []struct {
		name, pkg string
		imports   []string
		cgo       bool
		want      int
	}{
		{"as listed", "gpu/kvcache", []string{"fmt", "ganglion/gpu/ops"}, false, 0},
		{"leaf with cgo", "gpu/cpu", []string{"ganglion/plugins/rowstats", "ganglion/gpu/ops", "ganglion/gpu/tensor"}, true, 0},
		{"upward", "gpu/kvcache", []string{"ganglion/gpu/ops", "ganglion/appliance"}, false, 1},
		{"sideways", "storage", []string{"ganglion/appliance", "ganglion/storage/filelock", "ganglion/web"}, true, 1},
		{"no longer imported", "gpu/kvcache", []string{"fmt"}, false, 1},
		{"cgo outside the leaves", "gpu/tokenizer", nil, true, 1},
		{"unknown package", "gpu/new", nil, false, 1},
	}
	for _, tt := range tests {
		if got := offences(rules, tt.pkg, tt.imports, tt.cgo); len(got) != tt.want {
			t.Errorf("%s: %v, want %d offences", tt.name, got, tt.want)
		}
	}
}

func TestImportPolicyCatchesOffencesOfTests(t *testing.T) {
	tests := []struct {
		pkg, imports string
		want         int
	}{
		{"gpu/tokenizer", "ganglion/gpu/gguf", 0},
		{"appliance", "ganglion/gpu/gguf/gguftest", 0},
		{"storage", "ganglion/web", 1},
		{"web", "ganglion/storage", 1},
		{"plugins/sampling", "ganglion/gpu/ops", 1},
		{"gpu/engine", "ganglion/plugins/sampling", 1},
		{"gpu/compute", "ganglion/plugins/rowstats", 0},
		{"appliance", "ganglion/web/api", 1},
		{"cmd/ganglion", "ganglion/storage", 0},
	}
	for _, tt := range tests {
		if got := testOffences(tt.pkg, []string{"testing", tt.imports}); len(got) != tt.want {
			t.Errorf("%s tests with %s: %v, want %d offences", tt.pkg, tt.imports, got, tt.want)
		}
	}
}

// The decoder of films is data that build.sh fetches. As an import it would cost every start
// its unpacking, and its licence would hold for every build.
func TestFilmDecoderIsNoImport(t *testing.T) {
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "go-ffmpreg") {
		t.Error("go.mod requires go-ffmpreg, which is to be fetched as data alone")
	}
}
