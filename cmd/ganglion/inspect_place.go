package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"ganglion/gpu/compute"
	"ganglion/gpu/gguf"
)

// placement is how the matrices of one type lie where a model runs. A model runs whole
// on the processor or on one GPU.
type placement struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"` // in the file
	// GPU is the format there, Own whether it is the type's own and not one that it is
	// repacked into exactly; empty: no GPU takes it.
	GPU      string `json:"gpu,omitempty"`
	Own      bool   `json:"own"`
	GPUBytes int64  `json:"gpu_bytes"`
}

// placements lists the types of a file's matrices, the largest first.
func placements(f *gguf.File) []placement {
	byType := map[string]*placement{}
	for _, t := range f.Tensors() {
		if len(t.Dims) < 2 {
			continue // vectors are widened to floats everywhere
		}
		p := byType[t.Type.String()]
		if p == nil {
			p = &placement{Type: t.Type.String()}
			byType[p.Type] = p
		}
		experts := 1
		for _, n := range t.Dims[2:] {
			experts *= n
		}
		p.Tensors++
		p.Bytes += t.Bytes
		if format, bytes, own, err := compute.Packing(t.Type, t.Dims[0], t.Dims[1], experts); err == nil {
			p.GPU, p.Own = format, own
			p.GPUBytes += bytes
		}
	}
	out := []placement{}
	for _, p := range byType {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b placement) int {
		if a.Bytes != b.Bytes {
			return int(b.Bytes>>10) - int(a.Bytes>>10)
		}
		if a.Type < b.Type {
			return -1
		}
		return 1
	})
	return out
}

func printPlacements(w io.Writer, list []placement) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MATRICES\tNUMBER\tIN THE FILE\tON A GPU\t")
	var file, device int64
	for _, p := range list {
		how := "as " + p.GPU
		switch {
		case p.GPU == "":
			how = "cannot be there"
		case !p.Own:
			how = "repacked exactly as " + p.GPU
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", p.Type, p.Tensors, bytesText(p.Bytes), bytesText(p.GPUBytes), how)
		file, device = file+p.Bytes, device+p.GPUBytes
	}
	fmt.Fprintf(t, "all\t\t%s\t%s\ton one device, or all on the processor\n", bytesText(file), bytesText(device))
	return t.Flush()
}
