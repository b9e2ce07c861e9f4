package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ganglion/plugins/abi"
	"ganglion/plugins/meter"
	"ganglion/plugins/wasm"
)

const wasiModule = "wasi_snapshot_preview1"

// Inspect reads what a file says about itself, without running or compiling anything.
func Inspect(file []byte) (*abi.Manifest, error) {
	if len(file) > MaxFileBytes {
		return nil, fmt.Errorf("host: load: %d bytes, at most %d", len(file), MaxFileBytes)
	}
	m, err := wasm.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("host: load: %w", err)
	}
	return manifestOf(m)
}

func manifestOf(m *wasm.Module) (*abi.Manifest, error) {
	text, ok := m.Custom(abi.SectionManifest)
	if !ok {
		return nil, fmt.Errorf("host: load: there is no section %s: not a plugin", abi.SectionManifest)
	}
	manifest, err := abi.ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("host: load: %w", err)
	}
	return manifest, nil
}

// Load takes a file through the whole pipeline. Whatever the file holds, it is accepted
// or refused within bounds of time and memory. The plugin has one reference, the
// caller's.
func (r *Runtime) Load(ctx context.Context, file []byte) (*Plugin, error) {
	if len(file) > MaxFileBytes {
		return nil, fmt.Errorf("host: load: %d bytes, at most %d", len(file), MaxFileBytes)
	}
	m, err := wasm.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("host: load: %w", err)
	}
	manifest, err := manifestOf(m)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(file)
	p := &Plugin{r: r, manifest: manifest, hash: hex.EncodeToString(hash[:]), size: len(file), refs: 1}
	if err := p.check(m); err != nil {
		return nil, fmt.Errorf("host: load %s: %w", manifest.Name, err)
	}
	if r.store == nil && m.CodeBytes() > maxCodeHere {
		return nil, fmt.Errorf("host: load %s: %d bytes of code, at most %d where no child compiles them", manifest.Name, m.CodeBytes(), maxCodeHere)
	}
	metered, info, err := meter.Rewrite(file)
	if err != nil {
		return nil, fmt.Errorf("host: load %s: %w", manifest.Name, err)
	}
	for _, g := range info.Globals {
		p.globals = append(p.globals, g.Name)
	}
	if p.compiled, err = r.compile(ctx, metered); err != nil {
		return nil, fmt.Errorf("host: load %s: %w", manifest.Name, err)
	}
	until := newDeadline(r.codeTime)
	if err = p.prepare(info.HasStart, until); err == nil {
		err = p.golden(ctx, m, until)
	}
	if err != nil && until.late() {
		err = transient("%w", err)
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("host: load %s: %w", manifest.Name, err)
	}
	r.mu.Lock()
	r.loaded[p] = true
	r.mu.Unlock()
	return p, nil
}

// check holds the module against the limits of plugins and against its manifest.
func (p *Plugin) check(m *wasm.Module) error {
	l := wasm.PluginLimits()
	if p.manifest.Can(abi.CapWASI) {
		l.Modules = append(l.Modules, wasiModule)
	}
	l.MemoryPages = p.manifest.MemoryPages
	if err := wasm.Check(m, l); err != nil {
		return err
	}
	for i, s := range m.Datas {
		if s.Mode != wasm.Active {
			return fmt.Errorf("data segment %d is passive: whether it was dropped is in no snapshot", i)
		}
	}
	for i, s := range m.Elements {
		if s.Mode == wasm.Passive {
			return fmt.Errorf("element segment %d is passive: whether it was dropped is in no snapshot", i)
		}
	}
	if err := checkImports(m); err != nil {
		return err
	}
	if err := p.checkExports(m); err != nil {
		return err
	}
	if p.r.interpreter && !p.r.o.AllowSlow && (p.manifest.View.Logits == abi.LogitsFull || p.manifest.View.Mask) {
		return errors.New("full and mask views are too slow where guests are interpreted")
	}
	p.assets = map[string][]byte{}
	for _, s := range m.Sections {
		if name, ok := strings.CutPrefix(s.Name, abi.SectionAsset); ok && s.ID == wasm.SectionCustom {
			if _, twice := p.assets[name]; twice {
				return fmt.Errorf("asset %q stands twice", name)
			}
			p.assets[name] = slices.Clone(m.Bytes[s.Data.Start:s.Data.End])
		}
	}
	return nil
}

// checkImports wants every import to be a function that there is, of its type.
func checkImports(m *wasm.Module) error {
	for _, i := range m.Imports {
		list := hostFunctions
		if i.Module == wasiModule {
			list = wasiFunctions()
		}
		at := slices.IndexFunc(list, func(f hostFunction) bool { return f.name == i.Name })
		if at < 0 {
			return fmt.Errorf("import %s.%.64q: there is no such function", i.Module, i.Name)
		}
		t := &m.Types[i.Type]
		if have := letters(t.Params); have != list[at].params || letters(t.Results) != list[at].results {
			return fmt.Errorf("import %s.%s: is of type (%s) → (%s), not (%s) → (%s)", i.Module, i.Name, have, letters(t.Results), list[at].params, list[at].results)
		}
	}
	return nil
}

// letters writes types as in hostFunction.
func letters(types []wasm.ValType) string {
	out := make([]byte, len(types))
	for i, t := range types {
		switch t {
		case wasm.I32:
			out[i] = 'i'
		case wasm.I64:
			out[i] = 'I'
		case wasm.F32:
			out[i] = 'f'
		case wasm.F64:
			out[i] = 'F'
		default:
			out[i] = '?'
		}
	}
	return string(out)
}

// checkExports finds the hooks and checks the types of everything the host calls.
func (p *Plugin) checkExports(m *wasm.Module) error {
	of := func(name, params, results string) (bool, error) {
		e, ok := m.Export(name)
		if !ok {
			return false, nil
		}
		if e.Kind != wasm.KindFunc {
			return false, fmt.Errorf("export %s is a %s", name, e.Kind)
		}
		t := m.FuncType(e.Index)
		if letters(t.Params) != params || letters(t.Results) != results {
			return false, fmt.Errorf("export %s is of type (%s) → (%s), not (%s) → (%s)", name, letters(t.Params), letters(t.Results), params, results)
		}
		return true, nil
	}
	for _, f := range []struct{ name, params, results string }{{"gg_abi_1", "", "i"}, {"gg_alloc", "ii", "i"}} {
		if ok, err := of(f.name, f.params, f.results); err != nil || !ok {
			return orError(err, fmt.Errorf("export %s is missing", f.name))
		}
	}
	var err error
	if p.initialises, err = of("_initialize", "", ""); err != nil {
		return err
	}
	if p.opens, err = of("gg_open", "ii", "i"); err != nil {
		return err
	}
	exported := abi.HookSet(0)
	for h := abi.HookPrompt; h < abi.Hooks; h++ {
		ok, err := of("gg_"+h.String(), "i", "i")
		if err != nil {
			return err
		}
		if ok {
			exported = exported.With(h)
		}
	}
	return p.chooseHooks(exported)
}

// chooseHooks decides which hooks are called: those of the manifest, or all that are
// exported.
func (p *Plugin) chooseHooks(exported abi.HookSet) error {
	p.hooks = p.manifest.Hooks
	if p.hooks == 0 {
		if exported.Has(abi.HookRun) {
			return errors.New("gg_run is exported: the manifest must list run and its events in hooks")
		}
		p.hooks = exported
	}
	p.program = p.hooks.Has(abi.HookRun)
	for h := abi.HookPrompt; h < abi.Hooks; h++ {
		event := p.program && (h == abi.HookPlan || h == abi.HookLogits || h == abi.HookAccept)
		if p.hooks.Has(h) && !event && !exported.Has(h) {
			return fmt.Errorf("hook %s is in the manifest, but gg_%s is not exported", h, h)
		}
	}
	if p.manifest.Draft == abi.DraftSelf && !p.hooks.Has(abi.HookRollback) {
		return errors.New("draft self needs gg_rollback")
	}
	p.manifest.Hooks = p.hooks // nobody else has the manifest yet
	return p.manifest.CheckInvariant()
}

func orError(err, other error) error {
	if err == nil {
		return other
	}
	return err
}
