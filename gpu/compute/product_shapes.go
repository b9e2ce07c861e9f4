package compute

import "strings"

// Which text a product is computed by, and how it is divided over invocations.

// What the names of kernels end with that are other texts.
const (
	tiledSuffix  = "_tiled"
	texelsSuffix = "_texels"
)

// productKernel names the kernel for a window. Texel fetches are for software renderers,
// which gain much; see gpu/kernels/README.md.
func (l *lowering) productKernel(p *product, w window) string {
	name := "matmul_" + p.m.format.Name()
	if _, isFloats := p.m.format.(*floats); !isFloats && !l.exact() {
		name += "_fast"
	}
	if l.byTiles(p) {
		return name + tiledSuffix
	}
	if d := l.rt.b.dev; d.Info().Software && d.Limits().Texels*texel >= max(w.bytes(), l.rt.b.window) {
		name += texelsSuffix
	}
	return name
}

// shapes of the kernels: rows of activations that share what is unpacked, and tiles that
// share activations.
const (
	sharedRows  = 4
	sharedTiles = 4
	texelTiles  = 8 // of matmul_texels.glsl
)

// Products with many rows go by tiles, which unpack a weight once for the rows of a
// workgroup (matmul_tiled.glsl, matmul_float_tiled.glsl).
const (
	fewRows     = 8   // up to so many, weights are read more often than they are multiplied
	tiledWG     = 256 // of the largest tile; smaller ones have fewer rows of activations
	tiledLeast  = 64
	tiledGroups = 64 // workgroups that a GPU is to have
)

// tiling decides when and how products go by tiles: tests have others.
type tiling struct {
	few    int // rows up to which they do not
	groups int // workgroups that there are to be
}

// byTiles tells whether a product goes by tiles. Renderers on the CPU are faster with texel
// fetches than with shared memory; gpu/kernels/README.md has the figures.
func (l *lowering) byTiles(p *product) bool {
	return p.topK == 0 && p.n > l.rt.b.tiles.few
}

// constants are how a product is divided over invocations: WG, TILES, XROWS. A software
// renderer has few threads, and activations cost it as much to read as weights; a GPU
// wants many invocations and has them divide a row. kernel says which text it is.
//
// Of a stack of experts tiles are those of one; the window has so many, which may be fewer,
// and invocations take no more of them: one whose tiles begin before the window and end
// after it would take itself for one that has none there (product_place.glsl).
func (p *product) constants(b *Backend, tiles, window int, kernel string) (wg, tilesEach, xRows uint32) {
	_, isFloats := p.m.format.(*floats)
	if strings.HasSuffix(kernel, tiledSuffix) {
		return p.tile(tiles, isFloats, b.tiles.groups)
	}
	wg, tilesEach, xRows = tileRows, 1, 1
	groups := p.n * max(p.topK, 1)
	if p.n > 1 && p.topK == 0 {
		xRows = sharedRows
		groups = (p.n + sharedRows - 1) / sharedRows
	}
	info := b.dev.Info()
	least, most := 512, uint32(sharedTiles) // workgroups that a GPU is to have
	if info.Software {
		least = 4
		if strings.HasSuffix(kernel, texelsSuffix) && !isFloats {
			most = texelTiles
		}
	}
	for tilesEach < most && int(2*tilesEach) <= window && tiles*groups/int(2*tilesEach) >= least {
		tilesEach *= 2
	}
	for !info.Software && !isFloats && wg < 8*tileRows && tiles*groups*int(wg)/tileRows < least {
		wg *= 2
	}
	return wg, tilesEach, xRows
}

// tile is the largest tile that leaves enough workgroups and is not half empty.
func (p *product) tile(tiles int, isFloats bool, least int) (wg, tilesEach, xRows uint32) {
	wg, tilesEach, xRows = tiledWG, 2, tiledWG/4
	if isFloats {
		tilesEach, xRows = 1, tiledWG/8
	}
	groups := func() int {
		return (tiles + int(tilesEach) - 1) / int(tilesEach) * ((p.n + int(xRows) - 1) / int(xRows))
	}
	for wg > tiledLeast && (int(xRows/2) >= p.n || groups() < least) {
		wg, xRows = wg/2, xRows/2
	}
	return wg, tilesEach, xRows
}
