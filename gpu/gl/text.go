package gl

import (
	"fmt"
	"strings"

	"ganglion/gpu/device"
)

// source is the text of a shader in a dialect.
func source(s *device.Shader, d device.Dialect, constants []uint32) string {
	var b strings.Builder
	switch d {
	case device.GLSL430:
		b.WriteString("#version 430\n#define PRECISE precise\n")
	case device.GLSL320ES:
		b.WriteString("#version 320 es\n#define PRECISE precise\nprecision highp float;\nprecision highp int;\n")
	default:
		b.WriteString("#version 310 es\n#extension GL_EXT_texture_buffer : enable\n#define PRECISE\nprecision highp float;\nprecision highp int;\n")
	}
	for i, c := range s.Constants {
		v := c.Default
		if i < len(constants) {
			v = constants[i]
		}
		fmt.Fprintf(&b, "#define %s %du\n", c.Name, v)
		if i == 0 {
			fmt.Fprintf(&b, "#define LOCAL_SIZE layout(local_size_x = %d) in;\n", v)
		}
	}
	b.WriteString(s.GLSL)
	return b.String()
}
