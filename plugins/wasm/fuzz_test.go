package wasm_test

import (
	"testing"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// FuzzParse: whatever the bytes, a decision comes, and what Parse reports lies within
// the file.
func FuzzParse(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(wasmtest.Random(seed))
	}
	f.Add(plugin(nil))
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := wasm.Parse(file)
		if err != nil {
			return
		}
		for _, s := range m.Sections {
			_ = file[s.All.Start:s.All.End]
			_ = file[s.Data.Start:s.Data.End]
		}
		for _, b := range m.Bodies {
			_ = file[b.Locals.Start:b.Locals.End]
			_ = file[b.Code.Start:b.Code.End]
		}
		m.FuncNames()
		_ = wasm.Check(m, wasm.PluginLimits())
		_ = wasm.Validate(m)
		for name, content := range map[string][]byte{"x": {1, 2, 3}, "name": nil} {
			more := wasm.AppendCustom(file, name, content)
			n, err := wasm.Parse(more)
			if err != nil {
				t.Fatalf("with a custom section more: %v", err)
			}
			if _, ok := n.Custom(name); !ok {
				t.Fatal("the custom section is not there")
			}
			if less, err := wasm.DropCustom(more, name); err != nil || len(less) > len(file) {
				t.Fatalf("%d bytes, %v after the custom section was dropped", len(less), err)
			}
		}
	})
}
