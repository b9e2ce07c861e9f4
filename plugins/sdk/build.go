package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoToolchain is wrapped by errors of [Build] when a compiler is not installed.
var ErrNoToolchain = errors.New("toolchain is missing")

// Build compiles the plugin in a folder and returns the module with its manifest. The
// language is told by the source: plugin.c, plugin.rs, plugin.go or plugin.ts. Same
// source, compiler and SDK give the same bytes. Building runs the compilers of the
// machine and writes nothing into the folder.
func Build(ctx context.Context, dir string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "ganglion-plugin-")
	if err != nil {
		return nil, fmt.Errorf("sdk: %w", err)
	}
	defer os.RemoveAll(tmp)
	for _, l := range languages {
		if _, err := os.Stat(filepath.Join(dir, l.source)); err != nil {
			continue
		}
		out := filepath.Join(tmp, "plugin.wasm")
		if err := l.build(ctx, dir, tmp, out); err != nil {
			return nil, fmt.Errorf("sdk: building %s: %w", dir, err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			return nil, fmt.Errorf("sdk: %w", err)
		}
		if b, err = finish(b, dir); err != nil {
			return nil, fmt.Errorf("sdk: %s: %w", dir, err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("sdk: %s: holds none of plugin.c, plugin.rs, plugin.go, plugin.ts", dir)
}

type language struct {
	name, source, library string
	build                 func(ctx context.Context, dir, tmp, out string) error
}

var languages = []language{
	{"c", "plugin.c", "ganglion.h", buildC},
	{"rust", "plugin.rs", "ganglion.rs", buildRust},
	{"go", "plugin.go", "ganglion.go", buildGo},
	{"assemblyscript", "plugin.ts", "ganglion.ts", buildAssemblyScript},
}

// Languages are the languages that New knows.
func Languages() []string {
	var names []string
	for _, l := range languages {
		names = append(names, l.name)
	}
	return names
}

// New begins a plugin in a folder, which must not hold one: the SDK's example under the
// given name, its manifest, and the SDK's file.
func New(dir, lang, name string) error {
	for _, l := range languages {
		if l.name != lang {
			continue
		}
		files := map[string]string{l.source: lang + "/example/" + l.source, "manifest.json": lang + "/example/manifest.json", l.library: lang + "/" + l.library}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("sdk: %w", err)
		}
		for to, from := range files {
			b, err := sources.ReadFile(from)
			if err != nil {
				return fmt.Errorf("sdk: %w", err)
			}
			if to == "manifest.json" {
				b = bytes.Replace(b, []byte(`"top-a"`), []byte(`"`+name+`"`), 1)
			}
			f, err := os.OpenFile(filepath.Join(dir, to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				return fmt.Errorf("sdk: %w", err)
			}
			_, err = f.Write(b)
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("sdk: %w", err)
			}
		}
		return nil
	}
	return fmt.Errorf("sdk: no SDK for %q", lang)
}
