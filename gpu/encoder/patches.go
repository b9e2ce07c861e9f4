package encoder

import (
	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// place is a patch of a picture: its column and line.
type place struct{ x, y int }

// raster lists the patches of a grid line by line.
func raster(nx, ny int) []place {
	all := make([]place, 0, nx*ny)
	for y := range ny {
		for x := range nx {
			all = append(all, place{x, y})
		}
	}
	return all
}

// patch copies a patch of normalised planes [3, H, W] into dst: [3, patch, patch].
func patch(dst, planes []float32, w, h, size int, at place) {
	for c := range 3 {
		for dy := range size {
			from := planes[(c*h+at.y*size+dy)*w+at.x*size:]
			copy(dst[(c*size+dy)*size:], from[:size])
		}
	}
}

// planes are a picture's normalised colours.
func (c *canvas) planes(m pixel.Image) []float32 {
	dst := make([]float32, 3*m.W*m.H)
	pixel.Normalise(dst, m, c.mean, c.std)
	return dst
}

// pixels is how many values a patch has.
func (c *canvas) pixels() int { return 3 * c.patch * c.patch }

// square is the job on a picture whose patches go in one by one, line by line.
func (c *canvas) square(m pixel.Image) *job {
	planes, n := c.planes(m), c.pixels()
	at := raster(m.W/c.patch, m.H/c.patch)
	j := &job{rows: len(at), embeds: make([]float32, len(at)*n)}
	for i, p := range at {
		patch(j.embeds[i*n:], planes, m.W, m.H, c.patch, p)
	}
	return j
}

// blocks is the list of a merge of n×n patches, which stand line by line in a grid of nx
// columns: for each block, line by line, its patches line by line.
func blocks(nx, ny, n int) []int32 {
	var list []int32
	for _, b := range raster(nx/n, ny/n) {
		for _, p := range raster(n, n) {
			list = append(list, int32((b.y*n+p.y)*nx+b.x*n+p.x))
		}
	}
	return list
}

// rotary are the positions of patches: time 0, line, column.
func rotary(at []place) []int32 {
	var pos []int32
	for _, p := range at {
		pos = append(pos, 0, int32(p.y), int32(p.x))
	}
	return pos
}

// The axes of ops.Batch.Rotary.
const (
	axisY = 1
	axisX = 2
)

// embedPatches multiplies patches with the kernel of the first convolution.
func (g *graph) embedPatches(name string, in ops.View) ops.View {
	return g.MatMul("patches", g.matrix(name+".weight", in.Width, g.width), g.weight(name+".bias", g.width, 1), in)
}
