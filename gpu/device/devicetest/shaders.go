package devicetest

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"ganglion/gpu/device"
)

//go:generate go run ganglion/cmd/kernelgen

//go:embed *.comp generated
var files embed.FS

func read(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("devicetest: %v: run go run ./cmd/kernelgen", err))
	}
	return data
}

// shaders completes the generated table.
var shaders = sync.OnceValue(func() map[string]*device.Shader {
	all := map[string]*device.Shader{}
	for _, s := range table {
		s.SPIRV = read("generated/" + s.Name + ".spv")
		s.GLSL = strings.Replace(string(read(s.Name+".comp")), "#include \"common.glsl\"\n", string(read("generated/common.glsl")), 1)
		all[s.Name] = &s
	}
	return all
})

// shader gives a shader of the suite.
func shader(name string) *device.Shader {
	s := shaders()[name]
	if s == nil {
		panic("devicetest: no shader " + name)
	}
	return s
}
