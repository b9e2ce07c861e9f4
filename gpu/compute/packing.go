package compute

import (
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// Packing tells how a matrix of a type lies on a GPU: the name of its format, its bytes
// there, and whether the format is the type's own. Other types are repacked exactly into
// one that has kernels.
func Packing(t tensor.Type, cols, rows, experts int) (format string, bytes int64, own bool, err error) {
	f, err := formatOf(&ops.Weight{Type: t, Cols: cols, Rows: rows, Experts: experts}, false)
	if err != nil {
		return "", 0, false, err
	}
	tiles := int64((rows+tileRows-1)/tileRows) * int64(max(experts, 1))
	_, own = formats[t]
	return f.Name(), tiles * f.TileBytes(cols), own, nil
}
