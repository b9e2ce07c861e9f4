package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"ganglion/appliance"
	"ganglion/gpu/compute"
	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/split"
)

// placement is how the matrices of one type lie where a model runs. Which of them lie
// where, when a GPU has too little memory for all, tells a share.
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
	fmt.Fprintf(t, "all\t\t%s\t%s\twhere nothing is divided\n", bytesText(file), bytesText(device))
	return t.Flush()
}

// share is what a device would hold of a model, as a forecast.
type share struct {
	On      string `json:"on"` // "processor" or "device"
	Holds   string `json:"holds"`
	Weights int64  `json:"weight_bytes"`
	KV      int64  `json:"kv_bytes"`
	Scratch int64  `json:"scratch_bytes"`
}

func (s share) total() int64 { return s.Weights + s.KV + s.Scratch }

// divide tells how a model would be divided between the processor and a GPU with so much
// memory, the beginning first, with phases for a GPU that reads prompts beside a processor
// that writes tokens; nil where nothing is asked.
func divide(f *gguf.File, memory string, context int, phases bool) ([]share, error) {
	if memory == "" && !phases {
		return nil, nil
	}
	budget := int64(math.MaxInt64)
	if memory != "" {
		var err error
		if budget, err = appliance.ParseBytes(memory); err != nil || budget < 0 {
			return nil, fail(exitUsage, "", "--device-memory %q: want a size such as 6GiB", memory)
		}
	}
	if context < 0 {
		return nil, fail(exitUsage, "", "--context %d is negative", context)
	}
	p, o, err := engine.PlanOf(f, engine.Config{Context: context})
	if err != nil {
		return nil, modelError(err)
	}
	var out []share
	for _, part := range split.Forecast(p, o, budget) {
		out = append(out, share{part.Backend, part.Holds, part.Memory.Weights, part.Memory.KV, part.Memory.Scratch})
	}
	if !phases {
		return out, nil
	}
	for i := range out {
		out[i].Holds = forPhase(ops.PhasePrompt) + out[i].Holds
	}
	need := engine.NewForecast(p, o)
	return append(out, share{"processor", forPhase(ops.PhaseDecode) + "everything", need.Weights, need.KV, need.Scratch}), nil
}

func printDivision(w io.Writer, list []share) error {
	if len(list) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nON THE\tWEIGHTS\tKV CACHE\tSCRATCH\tALL\t")
	var all share
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.On, bytesText(s.Weights), bytesText(s.KV), bytesText(s.Scratch), bytesText(s.total()), s.Holds)
		all.Weights, all.KV, all.Scratch = all.Weights+s.Weights, all.KV+s.KV, all.Scratch+s.Scratch
	}
	if len(list) > 1 {
		fmt.Fprintf(t, "all\t%s\t%s\t%s\t%s\t\n", bytesText(all.Weights), bytesText(all.KV), bytesText(all.Scratch), bytesText(all.total()))
	}
	return t.Flush()
}
