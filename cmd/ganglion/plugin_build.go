package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/sdk"
	"ganglion/plugins/wasm"
)

func newPluginBuild(e *env) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "build [flags] [FOLDER]",
		Short: "Compile a plugin and put its manifest, tests and assets into the file",
		Long:  "Compiles the plugin in a folder (this one, when none is named) with the compiler of its\nlanguage, and adds manifest.json, tests.jsonl and the files of assets/ as sections.",
		Args:  atMostOne("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			file, m, err := buildPlugin(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(dir, m.Name+".wasm")
			}
			if err := os.WriteFile(out, file, 0o644); err != nil {
				return fail(exitFailure, "--out names another place", "%v", err)
			}
			e.note("%s@%s, %d bytes: %s", m.Name, m.Version, len(file), out)
			return nil
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "`FILE` to write (default: the plugin's name in its folder)")
	return c
}

// buildPlugin compiles a folder and completes the file.
func buildPlugin(ctx context.Context, dir string) ([]byte, *abi.Manifest, error) {
	file, err := sdk.Build(ctx, dir)
	if errors.Is(err, sdk.ErrNoToolchain) {
		return nil, nil, fail(exitUnavailable, "plugins/sdk says what each language needs", "%v", err)
	}
	if err != nil {
		return nil, nil, fail(exitUsage, "", "%v", err)
	}
	if file, err = addSections(file, dir); err != nil {
		return nil, nil, err
	}
	m, err := host.Inspect(file)
	if err != nil {
		return nil, nil, fail(exitUsage, "", "%v", err)
	}
	return file, m, nil
}

// addSections adds what lies beside the source and is not in the file yet.
func addSections(file []byte, dir string) ([]byte, error) {
	m, err := wasm.Parse(file)
	if err != nil {
		return nil, fail(exitUsage, "", "%v", err)
	}
	have := map[string]bool{}
	for _, s := range m.Sections {
		have[s.Name] = true
	}
	add := func(section, path string) error {
		if have[section] {
			return nil
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fail(exitUsage, "", "%v", err)
		}
		file = wasm.AppendCustom(file, section, b)
		return nil
	}
	err = errors.Join(add(abi.SectionManifest, filepath.Join(dir, "manifest.json")), add(abi.SectionTests, filepath.Join(dir, "tests.jsonl")))
	assets := filepath.Join(dir, "assets")
	entries, listErr := os.ReadDir(assets)
	if listErr != nil && !errors.Is(listErr, fs.ErrNotExist) {
		err = errors.Join(err, fail(exitUsage, "", "%v", listErr))
	}
	for _, a := range entries {
		if a.Type().IsRegular() {
			err = errors.Join(err, add(abi.SectionAsset+a.Name(), filepath.Join(assets, a.Name())))
		}
	}
	return file, err
}
