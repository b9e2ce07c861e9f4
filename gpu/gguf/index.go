package gguf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"ganglion/gpu/tensor"
)

// maxDims is the largest number of dimensions of a tensor (GGUF specification).
const maxDims = 4

// Tensor describes one tensor of a file.
type Tensor struct {
	Name   string
	Type   tensor.Type
	Dims   []int // GGUF order: Dims[0] is the row length; shared, not to be changed
	Offset int64 // of its data, from the start of its part's GGUF
	Bytes  int64 // of its data
	Part   int   // part of a split file that holds it, from 0
}

// Cols returns the number of values in a row.
func (t Tensor) Cols() int {
	if len(t.Dims) == 0 {
		return 1
	}
	return t.Dims[0]
}

// Rows returns the number of rows: the product of all dimensions but the first.
func (t Tensor) Rows() int {
	n := 1
	for i := 1; i < len(t.Dims); i++ {
		n *= t.Dims[i]
	}
	return n
}

// ordinal names the i-th thing of a list, counted from 0.
func ordinal(what string, i int) string { return fmt.Sprintf("%s %d", what, i) }

// quoted names a thing by its own name, cut where it is hostile.
func quoted(what, name string) string { return what + " " + shortQuote([]byte(name)) }

// readTensors reads the tensor index and checks each tensor against the file.
func (h *header) readTensors(r *reader, n int, align int64) error {
	names := make(map[string]bool)
	var offsets []int // where each tensor's offset field stands, for the error below
	for i := range n {
		at := r.off
		name, err := r.str(ordinal("tensor", i)+": name", maxNameLen)
		if err != nil {
			return err
		}
		if names[name] {
			return r.fail(at, quoted("tensor", name), "appears twice")
		}
		names[name] = true
		t, err := readTensor(r, name, align)
		if err != nil {
			return err
		}
		h.tensors = append(h.tensors, t)
		offsets = append(offsets, r.off-8)
	}
	// Data begins at the next multiple of the alignment; align is at most 2³⁰, so the
	// sum cannot overflow.
	h.data = (int64(r.off) + align - 1) &^ (align - 1)
	have := max(r.size-h.data, 0)
	for i := range h.tensors {
		t := &h.tensors[i]
		if t.Offset > have || t.Bytes > have-t.Offset {
			return r.fail(offsets[i], quoted("tensor", t.Name)+": offset",
				"%d bytes at byte %d of the data do not fit, data begins at byte %d and the file has %d", t.Bytes, t.Offset, h.data, r.size)
		}
		t.Offset += h.data
	}
	return h.apart(r, offsets)
}

// apart refuses tensors that share bytes: no writer lays them out so, and two names
// for one place are the mark of a damaged or forged index. at tells where each
// tensor's offset field stands.
func (h *header) apart(r *reader, at []int) error {
	order := make([]int, len(h.tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(h.tensors[i].Offset, h.tensors[j].Offset), cmp.Compare(i, j))
	})
	for n := 1; n < len(order); n++ {
		t, before := h.tensors[order[n]], h.tensors[order[n-1]]
		if t.Offset < before.Offset+before.Bytes {
			return r.fail(at[order[n]], quoted("tensor", t.Name)+": offset", "begins at byte %d, inside tensor %s, which ends at byte %d",
				t.Offset, shortQuote([]byte(before.Name)), before.Offset+before.Bytes)
		}
	}
	return nil
}

// readTensor reads what follows a tensor's name. Its Offset counts from the start of
// the data, which is not known yet.
func readTensor(r *reader, name string, align int64) (Tensor, error) {
	t := Tensor{Name: name}
	field := quoted("tensor", name)
	dimsAt := r.off
	dims, err := r.u32(field + ": dimension count")
	if err != nil {
		return t, err
	}
	if dims > maxDims {
		return t, r.fail(dimsAt, field+": dimension count", "%d, at most %d are allowed", dims, maxDims)
	}
	values := int64(1)
	for i := range int(dims) {
		dimField := fmt.Sprintf("%s: dimension %d", field, i)
		at := r.off
		d, err := r.u64(dimField)
		if err != nil {
			return t, err
		}
		if d == 0 || d > uint64(math.MaxInt)/uint64(values) {
			return t, r.fail(at, dimField, "%d is zero or makes the tensor too large", d)
		}
		values *= int64(d)
		t.Dims = append(t.Dims, int(d))
	}
	typeAt := r.off
	id, err := r.u32(field + ": type")
	if err != nil {
		return t, err
	}
	t.Type = tensor.Type(id)
	if !t.Type.Known() {
		return t, r.fail(typeAt, field+": type", "type %d is not supported, supported types are %s", id, supported())
	}
	if t.Cols()%t.Type.BlockSize() != 0 {
		return t, r.fail(typeAt, field+": type", "rows of %d values do not divide into %v blocks of %d", t.Cols(), t.Type, t.Type.BlockSize())
	}
	row, err := tensor.RowBytes(t.Type, t.Cols())
	if t.Bytes = int64(row); err != nil || t.Bytes > math.MaxInt64/int64(t.Rows()) {
		return t, r.fail(dimsAt, field+": dimensions", "%v of %v are too large", t.Dims, t.Type)
	}
	t.Bytes *= int64(t.Rows())
	at := r.off
	offset, err := r.u64(field + ": offset")
	if err != nil {
		return t, err
	}
	if offset > math.MaxInt64 || int64(offset)&(align-1) != 0 {
		return t, r.fail(at, field+": offset", "%d is not a multiple of the alignment %d or too large", offset, align)
	}
	t.Offset = int64(offset)
	return t, nil
}

// supported lists the weight types for an error message.
func supported() string {
	var names []string
	for _, t := range tensor.Types() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}
