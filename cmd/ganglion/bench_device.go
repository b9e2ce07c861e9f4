package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ganglion/gpu"
	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/engine"
	"ganglion/gpu/kernels"
	"ganglion/gpu/probe"
	"ganglion/gpu/tensor"
)

// deviceResult is what figures of a GPU must be read with, and where its time goes.
type deviceResult struct {
	Name     string             `json:"name"`
	Vendor   string             `json:"vendor"`
	API      device.API         `json:"api"`
	Version  string             `json:"api_version"`
	Driver   string             `json:"driver"`
	ID       string             `json:"id"`
	Software bool               `json:"software"`
	Discrete bool               `json:"discrete"`
	Memory   int64              `json:"memory_bytes"`
	Limits   device.Limits      `json:"limits"`
	Caps     device.Caps        `json:"caps"`
	Kernels  string             `json:"kernel_set"`
	Copy     float64            `json:"copy_gigabytes_per_second"` // read and written
	Read     float64            `json:"read_gigabytes_per_second"` // by a kernel that does nothing else
	Packing  []packingRatio     `json:"packing"`                   // by type of weights
	Trials   []probe.Trial      `json:"trials"`                    // of kernels that make use of abilities
	Variants []string           `json:"variants"`                  // those of them that are taken in fast mode
	Prefill  []probe.KernelTime `json:"prefill_kernels"`           // of one prompt; empty where the device has no clock
	Decode   []probe.KernelTime `json:"decode_kernels"`            // of timedTokens tokens
}

// packingRatio is what a type of weights takes on a GPU, where a product reads all of it
// once, against its bytes in the file.
type packingRatio struct {
	Type   string  `json:"type"`
	Format string  `json:"format"` // in which it lies there
	Ratio  float64 `json:"of_file"`
}

// packingRatios are those of matrices of 4096 by 4096, of all types that GPUs take.
func packingRatios() (list []packingRatio) {
	const n = 4096
	for _, t := range tensor.Types() {
		row, err := tensor.RowBytes(t, n)
		if err != nil {
			continue
		}
		format, bytes, _, err := compute.Packing(t, n, n, 1)
		if err != nil {
			continue
		}
		list = append(list, packingRatio{t.String(), format, float64(bytes) / float64(row*n)})
	}
	return list
}

// timedTokens are decoded to see where the time goes.
const timedTokens = 16

// benchDevice measures a device by itself and what each kernel takes. It opens the device
// a second time, for the clock between dispatches would slow the figures of the first.
func (s *settings) benchDevice(ctx context.Context, d probe.Device, prompt int) (r *deviceResult, err error) {
	var meter *probe.Meter
	m := s.machineWith(func(d device.Device) device.Device {
		meter = probe.NewMeter(d)
		return meter
	})
	defer func() { err = errors.Join(err, m.Close()) }()
	b, err := m.OpenDevice(d, s.choice())
	if err != nil {
		return nil, err
	}
	info, limits, caps := meter.Info(), meter.Limits(), meter.Caps()
	r = &deviceResult{Name: info.Name, Vendor: info.Vendor, API: info.API, Version: info.Version, Driver: info.Driver, ID: info.ID,
		Software: info.Software, Discrete: info.Discrete, Memory: info.Memory, Limits: limits, Caps: caps, Kernels: gpu.KernelHash(), Packing: packingRatios(),
		Trials: append([]probe.Trial{}, d.Trials...), Variants: append([]string{}, d.Variants(probe.Variants(s.GPUVariants))...)}
	if r.Copy, err = probe.CopyRate(meter.Device, kernels.Get("copy")); err != nil {
		return nil, err
	}
	if r.Read, err = probe.ReadRate(meter.Device, kernels.Get); err != nil {
		return nil, err
	}
	f, err := s.modelFile(ctx)
	if err != nil {
		return nil, err
	}
	c := s.engine(b)
	c.Path, c.Slots, c.Recover = f.Path, 1, nil
	if c.Offset, c.Size, err = s.place(f); err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	timed := &closingEngine{Engine: e}
	for range 2 { // the first round compiles
		meter.Kernels()
		if _, err := timePrefill(timed, prompt, 1); err != nil {
			return nil, err
		}
		r.Prefill = meter.Kernels()
		if _, err := timeDecode(timed, 1, timedTokens); err != nil {
			return nil, err
		}
		r.Decode = meter.Kernels()
	}
	return r, nil
}

// print writes the device's part of the report.
func (r *deviceResult) print(w io.Writer, prompt int) {
	kind := "integrated"
	switch {
	case r.Software:
		kind = "software"
	case r.Discrete:
		kind = "discrete"
	}
	fmt.Fprintf(w, "\ndevice    %s, %s, %s\nid        %s\nreached   %s %s, driver %s\n", line(r.Name), line(r.Vendor), kind, line(r.ID), r.API, line(r.Version), line(r.Driver))
	l, c := r.Limits, r.Caps
	fmt.Fprintf(w, "limits    %d storage buffers, %s a binding, %s a buffer, %d invocations, %s shared, %d B of parameters, offsets of %d, %d texels\n",
		l.StorageBuffers, bytesText(l.BindingBytes), bytesText(l.BufferBytes), l.Invocations, bytesText(int64(l.SharedBytes)), l.ParamBytes, l.OffsetAlign, l.Texels)
	fmt.Fprintf(w, "can       precise %t, subgroup %d, dot4 %t, half %t, clock %t, shares memory %t\n", c.Precise, c.Subgroup, c.Dot4, c.Half, c.Timer, c.HostShare)
	fmt.Fprintf(w, "memory    %s, kernels %s\ncopies    %8.1f GB/s read and written\nreads     %8.1f GB/s\n", bytesText(r.Memory), r.Kernels, r.Copy, r.Read)
	fmt.Fprint(w, "packed   ")
	for _, p := range r.Packing {
		fmt.Fprintf(w, " %s %.3f", p.Type, p.Ratio)
	}
	fmt.Fprintln(w, " of the file's bytes")
	r.printTrials(w)
	if !c.Timer {
		fmt.Fprintln(w, "kernels   the device has no clock")
		return
	}
	r.printKernels(w, fmt.Sprintf("prefill of %d tokens", prompt), r.Prefill)
	r.printKernels(w, fmt.Sprintf("decode of %d tokens", timedTokens), r.Decode)
}

// printTrials writes what kernels took that make use of an ability, and those that they
// stand for, where they were tried.
func (r *deviceResult) printTrials(w io.Writer) {
	for _, t := range r.Trials {
		if t.Fault != "" {
			fmt.Fprintf(w, "variants  %s is not used: %s\n", t.Needs, line(t.Fault))
		}
		for _, k := range t.Kernels {
			taken := "not taken"
			if slices.Contains(r.Variants, k.Kernel) {
				taken = "taken"
			}
			fmt.Fprintf(w, "variants  %8.3f ms against %.3f without %s, %s: %s\n", k.MS, k.BaseMS, t.Needs, taken, k.Kernel)
		}
	}
}

// printKernels writes a table of kernels: of products the rate of weights, and what that is
// of the rate at which a kernel reads that does nothing else.
func (r *deviceResult) printKernels(w io.Writer, what string, list []probe.KernelTime) {
	total := 0.0
	for _, k := range list {
		total += k.MS
	}
	fmt.Fprintf(w, "kernels   %8.1f ms in all, %s\n", total, what)
	for _, k := range list {
		fmt.Fprintf(w, "          %8.2f ms %5.1f %%  %6d × %s", k.MS, 100*k.MS/max(total, 1e-9), k.Calls, k.Kernel)
		if k.Weights > 0 {
			fmt.Fprintf(w, ", %.2f GB/s of weights, %.0f %% of a plain read", k.Rate(), 100*k.Rate()/max(r.Read, 1e-9))
		}
		fmt.Fprintln(w)
	}
}
