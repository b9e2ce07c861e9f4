package wasm_test

import (
	"bytes"
	"testing"

	"ganglion/plugins/wasm"
)

func TestCustomSections(t *testing.T) {
	module := plugin(nil)
	one := wasm.AppendCustom(module, "ganglion.manifest", []byte("{}"))
	two := wasm.AppendCustom(one, "ganglion.sig", []byte{1, 2})
	three := wasm.AppendCustom(two, "ganglion.sig", []byte{3})
	m, err := wasm.Parse(three)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := m.Custom("ganglion.manifest"); !ok || string(got) != "{}" {
		t.Errorf("%q, %v", got, ok)
	}
	if got, _ := m.Custom("ganglion.sig"); !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("%x, want the first one", got)
	}
	if _, ok := m.Custom("ganglion.asset:x"); ok {
		t.Error("a section that is not there")
	}
	if got, err := wasm.DropCustom(three, "ganglion.sig"); err != nil || !bytes.Equal(got, one) {
		t.Errorf("%v: what was dropped leaves other bytes", err)
	}
	if got, err := wasm.DropCustom(one, "ganglion.manifest"); err != nil || !bytes.Equal(got, module) {
		t.Errorf("%v: what was dropped leaves other bytes", err)
	}
	if _, err := wasm.DropCustom(one[:40], "x"); err == nil {
		t.Error("half a module was taken")
	}
}
