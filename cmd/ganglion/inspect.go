package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ganglion/gpu/gguf"
)

func newInspect(e *env) *cobra.Command {
	var asJSON, tensors bool
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Print the metadata and tensors of a model file",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := gguf.Open(args[0])
			if err != nil {
				return modelError(err)
			}
			defer f.Close()
			if asJSON {
				return inspectJSON(e.stdout, f)
			}
			return inspectText(e.stdout, f, tensors)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&tensors, "tensors", true, "list the tensors")
	return c
}

func inspectText(w io.Writer, f *gguf.File, tensors bool) error {
	fmt.Fprintf(w, "%s: GGUF v%d, %s, %d parts, %s\n\n", f.Path(), f.Version(), f.Architecture(), len(f.Parts()), bytesText(f.Size()))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		fmt.Fprintf(t, "%s\t%s\n", key, v)
	}
	if tensors {
		fmt.Fprintln(t)
		for _, x := range f.Tensors() {
			fmt.Fprintf(t, "%s\t%s\t%v\t%s\n", x.Name, x.Type, x.Dims, bytesText(x.Bytes))
		}
	}
	return t.Flush()
}

func inspectJSON(w io.Writer, f *gguf.File) error {
	type tensorJSON struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Dims  []int  `json:"dims"`
		Bytes int64  `json:"bytes"`
	}
	out := struct {
		Path         string            `json:"path"`
		Version      uint32            `json:"version"`
		Architecture string            `json:"architecture"`
		Bytes        int64             `json:"bytes"`
		Parts        []string          `json:"parts"`
		Metadata     map[string]string `json:"metadata"`
		Tensors      []tensorJSON      `json:"tensors"`
	}{f.Path(), f.Version(), f.Architecture(), f.Size(), f.Parts(), map[string]string{}, nil}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		out.Metadata[key] = v.String()
	}
	for _, t := range f.Tensors() {
		out.Tensors = append(out.Tensors, tensorJSON{t.Name, t.Type.String(), t.Dims, t.Bytes})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
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
