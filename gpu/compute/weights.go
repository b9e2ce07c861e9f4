package compute

import (
	"context"
	"errors"
	"fmt"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// tileRows is the number of weight rows in a tile of a packed matrix, the unit that
// kernels and windows share out. The last tile of a matrix may have fewer; what it
// lacks is zero.
const tileRows = 32

// windowBytes bounds a window of a matrix and with it every buffer of weights: what
// one binding of the portable floor can see.
const windowBytes = 128 << 20

// stagingBytes bounds the host memory in which weights are packed before they go to
// the device, but for a single larger tile.
const stagingBytes = 4 << 20

// regionAlign is the alignment of what shares a buffer; larger than any known device
// asks for bindings (Limits.OffsetAlign).
const regionAlign = 256

// format is how the matrices of one type of weight lie on the device; see formatOf.
type format interface {
	// Name is a part of the names of the kernels that read it: "q4_k".
	Name() string
	// TileBytes is the size of a tile of 32 rows of cols columns, a multiple of 16.
	TileBytes(cols int) int64
	// Pack writes the tile of the rows [row, row+n) of a weight, n ≤ 32, counted
	// through its stack of experts. dst is zero and TileBytes long.
	Pack(dst []byte, w *ops.Weight, row, n int) error
}

// matrix is a weight packed on the device. A stack of experts is one matrix after
// another, each in whole tiles.
type matrix struct {
	weight    *ops.Weight
	format    format
	tileBytes int64
	tiles     int // of one matrix of the stack
	windows   []window
}

// window is a part of a matrix that one binding sees: the tiles [tile, tile+tiles),
// counted through the stack. It begins with whole matrices of a stack where one fits.
type window struct {
	region
	tile, tiles int
}

// rowBytes is the size of one row of a weight in the file.
func rowBytes(w *ops.Weight) int {
	n, err := tensor.RowBytes(w.Type, w.Cols)
	if err != nil {
		panic(fmt.Sprintf("compute: validated weight %q: %v", w.Name, err)) // Plan.Validate has asked the same
	}
	return n
}

// describeWeights decides where matrices and vectors will lie, without allocating.
func (r *Runtime) describeWeights() error {
	uses := r.plan.WeightUses()
	limits := r.b.dev.Limits()
	s := slabs{limit: min(r.b.window, limits.BindingBytes, limits.BufferBytes), name: "weights"}
	v := slabs{limit: s.limit, name: "vectors"}
	r.matrices, r.vectors = make(map[*ops.Weight]*matrix), make(map[*ops.Weight]region)
	r.describeStacks(uses, s.limit)
	for _, w := range r.plan.Weights {
		if st := r.stacks[w]; st != nil && r.matrices[w] == nil {
			if err := r.describeStack(st, &s, &v); err != nil {
				return err
			}
		}
	}
	for _, w := range r.plan.Weights {
		u := uses[w]
		if u == nil || r.placed(w) {
			continue // registered and not used, or part of a stack
		}
		var err error
		if u.Matrix || u.Table || u.Factor {
			if r.matrices[w], err = newMatrix(w, u.Factor, &s); err != nil {
				return err
			}
		}
		if u.Vector {
			if r.vectors[w], err = v.take(4 * int64(elements(w))); err != nil {
				return fmt.Errorf("weight %q: %w", w.Name, err)
			}
		}
	}
	if err := r.describeSlopes(&v); err != nil {
		return err
	}
	r.weights = append(s.all, v.all...)
	return nil
}

// placed tells whether a weight lies somewhere already.
func (r *Runtime) placed(w *ops.Weight) bool {
	_, isVector := r.vectors[w]
	return r.matrices[w] != nil || isVector
}

// newMatrix cuts a weight into windows.
func newMatrix(w *ops.Weight, factor bool, s *slabs) (*matrix, error) {
	f, err := formatOf(w, factor)
	if err != nil {
		return nil, fmt.Errorf("weight %q: %w", w.Name, err)
	}
	m := &matrix{weight: w, format: f, tileBytes: f.TileBytes(w.Cols), tiles: (w.Rows + tileRows - 1) / tileRows}
	most, all, unit := int(s.limit/m.tileBytes), m.tiles*max(w.Experts, 1), 1
	if most == 0 {
		return nil, fmt.Errorf("weight %q: a tile of %d bytes is beyond a binding of %d: %w", w.Name, m.tileBytes, s.limit, ops.ErrUnsupported)
	}
	if most > m.tiles {
		unit = m.tiles
		most -= most % unit
	}
	if n := (all + most - 1) / most; n > 1 { // as equal as can be, for the largest takes the longest
		most = (all/unit + n - 1) / n * unit
	}
	for at := 0; at < all; {
		k := min(most, all-at)
		part, err := s.take(int64(k) * m.tileBytes)
		if err != nil {
			return nil, fmt.Errorf("weight %q: %w", w.Name, err)
		}
		m.windows = append(m.windows, window{region: part, tile: at, tiles: k})
		at += k
	}
	return m, nil
}

// slabs gives out parts of buffers that are not larger than a limit, so that many
// small weights share one.
type slabs struct {
	name  string
	limit int64
	all   []*memory
}

func (s *slabs) take(bytes int64) (region, error) {
	if bytes > s.limit {
		return region{}, fmt.Errorf("%d bytes are beyond a binding of %d: %w", bytes, s.limit, ops.ErrUnsupported)
	}
	n := len(s.all)
	if n == 0 || align(s.all[n-1].need)+bytes > s.limit {
		s.all = append(s.all, &memory{name: s.name, use: device.Weights})
		n++
	}
	m := s.all[n-1]
	at := align(m.need)
	m.need = at + bytes
	return region{mem: m, offset: at, size: bytes}, nil
}

func align(n int64) int64 { return (n + regionAlign - 1) &^ (regionAlign - 1) }

// uploadWeights packs the weights into staging memory, a part at a time, and writes
// them to the device.
func (r *Runtime) uploadWeights(ctx context.Context, progress func(done, total int64)) error {
	u := &upload{r: r, ctx: ctx, progress: progress, total: r.plan.WeightBytes()}
	for _, m := range r.weights {
		if err := r.allocate(m); err != nil {
			return err
		}
	}
	for _, w := range r.plan.Weights {
		end := u.done + int64(len(w.Data))
		if v, ok := r.vectors[w]; ok {
			if err := u.vector(w, v); err != nil {
				return fmt.Errorf("weight %q: %w", w.Name, err)
			}
		}
		if m, ok := r.matrices[w]; ok {
			if err := u.matrix(m); err != nil {
				return fmt.Errorf("weight %q: %w", w.Name, err)
			}
		}
		if err := u.step(end); err != nil {
			return err
		}
	}
	if err := errors.Join(r.uploadSlopes(), r.uploadChains()); err != nil {
		return err
	}
	return ctx.Err()
}

// upload is one transfer of a plan's weights.
type upload struct {
	r           *Runtime
	ctx         context.Context
	progress    func(done, total int64)
	done, total int64
	staging     []byte
}

// step reports that the first done bytes of the weights are on the device.
func (u *upload) step(done int64) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	if u.progress != nil && done > u.done {
		u.progress(done, u.total)
	}
	u.done = done
	return u.ctx.Err()
}

// room is zeroed staging memory of n bytes.
func (u *upload) room(n int64) []byte {
	if int64(cap(u.staging)) < n {
		u.staging = make([]byte, n)
	}
	u.staging = u.staging[:n]
	clear(u.staging)
	return u.staging
}

// matrix packs and writes the tiles of a matrix.
func (u *upload) matrix(m *matrix) error {
	step := max(1, int(stagingBytes/m.tileBytes))
	row := int64(rowBytes(m.weight))
	for _, w := range m.windows {
		for from := 0; from < w.tiles; from += step {
			n := min(step, w.tiles-from)
			buf := u.room(int64(n) * m.tileBytes)
			read := int64(0)
			for t := range n {
				first, rows := m.tileRows(w.tile + from + t)
				if err := m.format.Pack(buf[int64(t)*m.tileBytes:int64(t+1)*m.tileBytes], m.weight, first, rows); err != nil {
					return err
				}
				read += int64(rows) * row
			}
			if err := u.r.write(w.region, int64(from)*m.tileBytes, buf); err != nil {
				return err
			}
			if last := w.tile+from+n == m.tiles*max(m.weight.Experts, 1); last {
				continue // the weight's own step follows
			}
			if err := u.step(u.done + read); err != nil {
				return err
			}
		}
	}
	return nil
}

// tileRows gives the rows of a tile, both counted through the stack.
func (m *matrix) tileRows(tile int) (first, n int) {
	in := tile % m.tiles * tileRows
	return tile/m.tiles*m.weight.Rows + in, min(tileRows, m.weight.Rows-in)
}

// vector widens a small weight to float32 and writes it.
func (u *upload) vector(w *ops.Weight, at region) error {
	v := make([]float32, elements(w))
	if err := tensor.Dequantize(w.Type, v, w.Data); err != nil {
		return err
	}
	return u.r.write(at, 0, putFloats(u.room(at.size), v))
}

func elements(w *ops.Weight) int { return w.Cols * w.Rows * max(w.Experts, 1) }
