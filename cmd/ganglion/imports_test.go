package main

import (
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// policy says which of our packages each package may import: cmd → web, storage →
// appliance → gpu/engine, plugins/sampling → … A new package adds its line here.
// "cgo" marks the leaf packages that may hold C.
const policy = `
gpu/tensor:
gpu/gguf: gpu/tensor
gpu/gguf/gguftest: gpu/gguf gpu/tensor
gpu/tokenizer:
gpu/ops: gpu/tensor
gpu/ops/ref: gpu/ops gpu/tensor
gpu/ops/opstest: gpu/ops gpu/ops/ref gpu/tensor
gpu/cpu: cgo gpu/ops gpu/tensor
gpu/kvcache: gpu/ops
gpu/model: gpu/ops gpu/gguf gpu/tensor
gpu/engine: gpu/model gpu/kvcache gpu/tokenizer gpu/ops gpu/gguf gpu/tensor
gpu: gpu/ops gpu/ops/ref gpu/cpu
plugins/sampling:
appliance: gpu/engine gpu/ops gpu/tokenizer gpu/gguf plugins/sampling
appliance/media: appliance
appliance/appliancetest: appliance gpu/engine gpu/ops gpu/tokenizer
storage: cgo appliance
web: appliance appliance/media gpu/engine gpu/tokenizer web/api
web/api: appliance appliance/media
web/ui:
cmd/ganglion: appliance gpu gpu/engine gpu/gguf gpu/ops gpu/tokenizer storage web web/ui
`

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
		if err != nil {
			return nil // no Go package here
		}
		seen++
		for _, o := range offences(rules, filepath.ToSlash(name), p.Imports, len(p.CgoFiles) > 0) {
			t.Error(o)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < len(rules) {
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
		{"allowed", "web", []string{"fmt", "ganglion/appliance"}, false, 0},
		{"upward", "appliance", []string{"ganglion/web"}, false, 1},
		{"sideways", "web", []string{"ganglion/storage"}, false, 1},
		{"cgo outside the leaves", "web", nil, true, 1},
		{"unknown package", "gpu/new", nil, false, 1},
	}
	for _, tt := range tests {
		if got := offences(rules, tt.pkg, tt.imports, tt.cgo); len(got) != tt.want {
			t.Errorf("%s: %v, want %d offences", tt.name, got, tt.want)
		}
	}
}
