// Package js makes plugins of JavaScript files.
//
// A script is a plugin with its manifest in the first comment block, behind the word
// ganglion; no compiler is needed. [Module] puts script and manifest into a copy of the
// guest, QuickJS-ng compiled to WebAssembly (guest/README.md), so that a script is loaded,
// metered and limited as any other module.
//
// The package imports plugins/wasm alone.
package js

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"ganglion/plugins/wasm"
)

//go:embed js.wasm
var guest []byte

const maxScript = 1 << 20

// ErrNoManifest says that a file does not begin with a manifest.
var ErrNoManifest = errors.New(`js: the script does not begin with a comment "/* ganglion {…} */"`)

// Module makes a module of a script. What the interpreter needs is added to the manifest
// where it says nothing else: memory and fuel. The
// script itself is not looked at: its errors show when it is opened.
func Module(script []byte) ([]byte, error) {
	if len(script) > maxScript {
		return nil, fmt.Errorf("js: the script has %d bytes, at most %d", len(script), maxScript)
	}
	manifest, err := manifestOf(script)
	if err != nil {
		return nil, err
	}
	out := wasm.AppendCustom(guest, "ganglion.manifest", manifest)
	return wasm.AppendCustom(out, "ganglion.asset:main.js", script), nil
}

// manifestOf reads the first comment of a script.
func manifestOf(script []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(script, " \t\r\n\ufeff"), []byte("/*"))
	if !ok {
		return nil, ErrNoManifest
	}
	rest, _, ok = bytes.Cut(rest, []byte("*/"))
	if !ok {
		return nil, ErrNoManifest
	}
	text, ok := bytes.CutPrefix(bytes.TrimSpace(rest), []byte("ganglion"))
	if !ok {
		return nil, ErrNoManifest
	}
	// Members stay as they are written, for the reader of manifests judges them.
	var m map[string]json.RawMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("js: manifest: %w", err)
	}
	if m == nil || m["hooks"] == nil {
		return nil, errors.New("js: manifest: hooks are missing: a script must name its own")
	}
	limits := map[string]json.RawMessage{}
	if l, ok := m["limits"]; ok {
		if err := json.Unmarshal(l, &limits); err != nil {
			return nil, fmt.Errorf("js: manifest: limits: %w", err)
		}
	}
	if limits["memory_pages"] == nil {
		limits["memory_pages"] = json.RawMessage("128")
	}
	if limits["fuel"] == nil {
		limits["fuel"] = json.RawMessage(`{"plan":32000000,"logits":32000000,"choose":32000000,"accept":32000000,"text":32000000}`)
	}
	b, err := json.Marshal(limits)
	if err != nil {
		return nil, fmt.Errorf("js: manifest: %w", err)
	}
	m["limits"] = b
	if b, err = json.Marshal(m); err != nil {
		return nil, fmt.Errorf("js: manifest: %w", err)
	}
	return b, nil
}
