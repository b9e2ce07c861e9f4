// Package wasmtest holds what tests of WebAssembly readers and rewriters share: the
// specification's own tests as scripts, and a generator of valid modules.
package wasmtest

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed testdata/spec-2.0.tar.zst
var archive []byte

// Script is the tests of one source file, in the order in which they run.
type Script struct {
	Name     string
	Commands []Command
}

// Command is one step of a script.
type Command struct {
	// Type is module, register, action, or what is to be asserted: assert_return,
	// assert_trap, assert_exhaustion, assert_invalid, assert_malformed,
	// assert_unlinkable, assert_uninstantiable.
	Type   string
	Line   int
	Name   string // of the module that the script calls so
	As     string // the name to register it under
	Binary []byte // the module; nil where the script has it as text only
	Text   string // the specification's message
	Action Action
}

// Action is a call of an exported function, or the reading of an exported global.
type Action struct {
	Get    bool
	Module string // by the script's name; "" is the latest
	Field  string
	Args   []uint64 // a vector takes two
}

type jsonCommand struct {
	Type, Name, As, Filename, Text string
	Line                           int
	Action                         struct {
		Type, Module, Field string
		Args                []struct {
			Type     string
			LaneType string `json:"lane_type"`
			Value    json.RawMessage
		}
	}
}

// SpecTest returns the module "spectest" that the scripts import from.
func SpecTest() ([]byte, error) {
	files, err := unpack()
	return files["spectest.wasm"], err
}

// Scripts returns the specification's tests, sorted by name.
func Scripts() ([]Script, error) {
	files, err := unpack()
	if err != nil {
		return nil, err
	}
	var scripts []Script
	for name, content := range files {
		base, ok := strings.CutSuffix(name, ".json")
		if !ok {
			continue
		}
		var parsed struct{ Commands []jsonCommand }
		if err := json.Unmarshal(content, &parsed); err != nil {
			return nil, fmt.Errorf("wasmtest: %s: %w", name, err)
		}
		s := Script{Name: base}
		for _, c := range parsed.Commands {
			args, err := arguments(&c)
			if err != nil {
				return nil, fmt.Errorf("wasmtest: %s, line %d: %w", name, c.Line, err)
			}
			s.Commands = append(s.Commands, Command{
				Type: c.Type, Line: c.Line, Name: c.Name, As: c.As, Text: c.Text, Binary: files[c.Filename],
				Action: Action{Get: c.Action.Type == "get", Module: c.Action.Module, Field: c.Action.Field, Args: args},
			})
		}
		scripts = append(scripts, s)
	}
	slices.SortFunc(scripts, func(a, b Script) int { return strings.Compare(a.Name, b.Name) })
	return scripts, nil
}

var unpack = sync.OnceValues(func() (map[string][]byte, error) {
	z, err := zstd.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("wasmtest: %w", err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("wasmtest: %w", err)
		}
		if files[h.Name], err = io.ReadAll(t); err != nil {
			return nil, fmt.Errorf("wasmtest: %w", err)
		}
	}
})

// arguments returns the values of a call as wazero takes them.
func arguments(c *jsonCommand) (args []uint64, err error) {
	for _, a := range c.Action.Args {
		if a.Type == "v128" {
			var lanes []string
			if err := json.Unmarshal(a.Value, &lanes); err != nil {
				return nil, err
			}
			var v [2]uint64
			width := 128 / len(lanes)
			for i, lane := range lanes {
				n, err := strconv.ParseUint(lane, 10, 64)
				if err != nil {
					return nil, err
				}
				v[i*width/64] |= n << (i * width % 64)
			}
			args = append(args, v[0], v[1])
			continue
		}
		var s string
		if err := json.Unmarshal(a.Value, &s); err != nil {
			return nil, err
		}
		n := uint64(0)
		if s != "null" {
			if n, err = strconv.ParseUint(s, 10, 64); err != nil {
				return nil, err
			}
			if a.Type == "externref" {
				n++ // wazero takes 0 for null
			}
		}
		args = append(args, n)
	}
	return args, nil
}
