package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ganglion/gpu/gguf"
)

func newInspect(e *env) *cobra.Command {
	var asJSON, tensors, phases bool
	var memory string
	var context int
	c := &cobra.Command{
		Use:   "inspect [flags] FILE",
		Short: "Print the metadata and tensors of a model file, and what a GPU makes of them",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fail(exitUsage, "`ganglion list` shows the models found on this machine", "inspect takes one FILE, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := gguf.Open(args[0])
			if err != nil {
				return modelError(err)
			}
			defer f.Close()
			division, err := divide(f, memory, context, phases)
			if err != nil {
				return err
			}
			if asJSON {
				return inspectJSON(e.stdout, f, division)
			}
			return errors.Join(inspectText(e.stdout, f, tensors), printDivision(e.stdout, division))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&tensors, "tensors", true, "list the tensors")
	c.Flags().StringVar(&memory, "device-memory", "", "tell what would lie on a GPU that has `SIZE` of memory for the model, such as 6GiB, and what on the processor")
	c.Flags().BoolVar(&phases, "phases", false, "tell what prompts on a GPU and tokens on the processor would take, each with the whole model")
	c.Flags().IntVar(&context, "context", 0, "with --device-memory or --phases: tokens of prompt and completion together; 0: as trained, at most 4096")
	return c
}

func inspectText(w io.Writer, f *gguf.File, tensors bool) error {
	parts := "1 file"
	if n := len(f.Parts()); n > 1 {
		parts = fmt.Sprintf("%d files", n)
	}
	fmt.Fprintf(w, "%s: GGUF v%d, %s, %s, %s\n\n", line(f.Path()), f.Version(), line(f.Architecture()), parts, bytesText(f.Size()))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		fmt.Fprintf(t, "%s\t%s\n", line(key), line(v.String()))
	}
	if tensors {
		fmt.Fprintln(t)
		for _, x := range f.Tensors() {
			fmt.Fprintf(t, "%s\t%s\t%v\t%s\n", line(x.Name), x.Type, x.Dims, bytesText(x.Bytes))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return printPlacements(w, placements(f))
}

func inspectJSON(w io.Writer, f *gguf.File, division []share) error {
	type tensorJSON struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Dims  []int  `json:"dims"`
		Bytes int64  `json:"bytes"`
	}
	out := struct {
		Path         string         `json:"path"`
		Version      uint32         `json:"version"`
		Architecture string         `json:"architecture"`
		Bytes        int64          `json:"bytes"`
		Parts        []string       `json:"parts"`
		Metadata     map[string]any `json:"metadata"`
		Tensors      []tensorJSON   `json:"tensors"`
		Matrices     []placement    `json:"matrices"`
		Division     []share        `json:"division,omitempty"`
	}{f.Path(), f.Version(), f.Architecture(), f.Size(), f.Parts(), map[string]any{}, []tensorJSON{}, placements(f), division}
	for _, key := range f.Keys() {
		out.Metadata[key] = metadataJSON(f, key)
	}
	for _, t := range f.Tensors() {
		out.Tensors = append(out.Tensors, tensorJSON{t.Name, t.Type.String(), t.Dims, t.Bytes})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// metadataJSON is a scalar as what it is, and an array as its beginning in words: a
// vocabulary would bury the rest. So is a number that JSON has no way to write.
func metadataJSON(f *gguf.File, key string) any {
	v, _ := f.Value(key)
	switch v.Type {
	case gguf.String:
		s, _ := f.String(key)
		return s
	case gguf.Bool:
		b, _ := f.Bool(key)
		return b
	case gguf.Array:
		return v.String()
	case gguf.Float32, gguf.Float64:
		if x, _ := f.Float(key); !math.IsNaN(x) && !math.IsInf(x, 0) {
			return x
		}
		return v.String()
	case gguf.Uint8, gguf.Uint16, gguf.Uint32, gguf.Uint64:
		n, _ := f.Uint(key)
		return n
	}
	n, _ := f.Int(key)
	return n
}

// bytesText is a size for people, in binary units.
func bytesText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), "KiB"
	for _, u := range []string{"MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
