// Package kernels holds the compute shaders of the GPU backends: one .comp text per
// operation and weight format, from which cmd/kernelgen makes the SPIR-V and the table
// of bindings. README.md has the conventions.
package kernels

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"ganglion/gpu/device"
	"ganglion/gpu/kernels/include"
)

//go:generate go run ganglion/cmd/kernelgen

//go:embed *.comp *.glsl
var texts embed.FS

//go:embed generated/*.spv
var binaries embed.FS

// load completes the generated table with the texts. What it reads is embedded, so an
// error is a table that was not generated anew.
var load = sync.OnceValue(func() map[string]*device.Shader {
	shaders := make(map[string]*device.Shader, len(table))
	for _, s := range table {
		spirv, err := binaries.ReadFile("generated/" + s.Name + ".spv")
		if err != nil {
			panic(fmt.Sprintf("kernels: %s: %v: run go run ./cmd/kernelgen", s.Name, err))
		}
		if s.Needs != device.Dot4 { // which no text of OpenGL can ask for
			if s.GLSL, err = include.Resolve(texts, s.Name+".comp"); err != nil {
				panic(fmt.Sprintf("kernels: %s: %v: run go run ./cmd/kernelgen", s.Name, err))
			}
		}
		s.SPIRV = spirv
		shaders[s.Name] = &s
	}
	return shaders
})

// Get is the shader of a name, nil when there is none. Shaders are shared and must not
// be changed; it may be called from any goroutine.
func Get(name string) *device.Shader { return load()[name] }

// Variants lists the shaders that can stand for one of the base set where a device has what
// they need, by name.
func Variants() (all []*device.Shader) {
	for _, s := range All() {
		if s.Needs != "" {
			all = append(all, s)
		}
	}
	return all
}

// All lists every shader by name.
func All() []*device.Shader {
	all := make([]*device.Shader, 0, len(table))
	for _, s := range table {
		all = append(all, Get(s.Name))
	}
	slices.SortFunc(all, func(a, b *device.Shader) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}
