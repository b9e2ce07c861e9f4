package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"ganglion/plugins/abi"
	"ganglion/plugins/meter"
)

// Plugin is a loaded file. It does not change and is safe for concurrent use. It is
// counted: whoever keeps it calls Retain and Close, and an instance keeps it too; the code
// is unmapped with the last of them.
type Plugin struct {
	r        *Runtime
	manifest *abi.Manifest
	hash     string
	size     int // of the file
	compiled wazero.CompiledModule
	globals  []string // exports of mutable globals
	assets   map[string][]byte

	hooks       abi.HookSet
	program     bool // gg_run
	initialises bool
	opens       bool

	image initial // what every instance starts from

	mu     sync.Mutex
	refs   int
	idle   []*guest    // the latest one last
	reaper *time.Timer // while there are some: closes those that nobody took
}

// initial is the state that initialisation left.
type initial struct {
	pages   uint32
	memory  []byte  // without the zeros at its end
	patches []patch // what differs from a guest whose code has not run
	globals []uint64
	time    uint64 // of WASI's clock; 0: before initialisation
}

// patch is a piece of memory.
type patch struct {
	at    int
	bytes []byte
}

// differences lists the blocks of memory that are not as in base, which is as long or
// shorter and stands for zeros behind its end.
func differences(base, memory []byte) (out []patch) {
	const block = 4 << 10 // a page of most systems: what is equal is not touched
	var zeros [block]byte
	for at := 0; at < len(memory); at += block {
		now := memory[at:min(at+block, len(memory))]
		was := zeros[:len(now)]
		if at < len(base) {
			was = base[at : at+len(now)]
		}
		if !bytes.Equal(now, was) {
			out = append(out, patch{at, slices.Clone(now)})
		}
	}
	return out
}

// Facts say what a plugin costs.
type Facts struct {
	FileBytes   int
	MemoryBytes int // of a fresh instance
	Hooks       []string
}

// Manifest is what the plugin says about itself. It must not be changed.
func (p *Plugin) Manifest() *abi.Manifest { return p.manifest }

// Hash is the SHA-256 of the file in hexadecimal.
func (p *Plugin) Hash() string { return p.hash }

// Facts tells sizes.
func (p *Plugin) Facts() Facts {
	f := Facts{FileBytes: p.size, MemoryBytes: int(p.image.pages) * memoryPage}
	for h := abi.HookPrompt; h < abi.Hooks; h++ {
		if p.hooks.Has(h) {
			f.Hooks = append(f.Hooks, h.String())
		}
	}
	return f
}

// Has tells whether the plugin has a hook.
func (p *Plugin) Has(h abi.Hook) bool { return p.hooks.Has(h) }

// Fuel is what a call of a hook may burn.
func (p *Plugin) Fuel(h abi.Hook) int64 {
	fuel := p.manifest.Fuel[h]
	if most := p.r.o.StepFuel; most > 0 && h != abi.HookOpen && h != abi.HookPrompt && h != abi.HookEnd {
		fuel = min(fuel, most)
	}
	return fuel
}

// Retain takes one more reference; false where the plugin is gone.
func (p *Plugin) Retain() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refs == 0 {
		return false
	}
	p.refs++
	return true
}

// Close gives a reference back.
func (p *Plugin) Close() {
	p.mu.Lock()
	p.refs--
	last := p.refs == 0
	p.mu.Unlock()
	if !last {
		return
	}
	p.drop(time.Time{})
	p.r.mu.Lock()
	delete(p.r.loaded, p)
	p.r.mu.Unlock()
	if p.compiled != nil {
		_ = p.compiled.Close(context.Background())
	}
}

// guest is a module instance with the handles that calls use. It belongs to one
// goroutine at a time.
type guest struct {
	mod     api.Module
	memory  api.Memory
	linear  *linear
	fuel    api.MutableGlobal
	rest    api.MutableGlobal // fuel behind it
	globals []api.MutableGlobal
	hooks   [abi.Hooks]api.Function
	alloc   api.Function
	open    api.Function // nil where there is none
	since   time.Time    // that it is idle
}

// look finds the functions that opening calls. Each handle has a stack of its own, which
// grows to what the deepest calls took (up to 100 MB) and never shrinks: a guest that is
// given back lets go of its handles.
func (g *guest) look(p *Plugin) {
	g.hooks = [abi.Hooks]api.Function{}
	g.alloc, g.open = g.mod.ExportedFunction("gg_alloc"), nil
	if p.opens {
		g.open = g.mod.ExportedFunction("gg_open")
	}
}

func (g *guest) close() { _ = g.mod.Close(context.Background()) }

// keeper hands the memory that a guest is given to whoever instantiates it.
type keeper struct {
	allocator
	l *linear
}

func (k *keeper) Allocate(reserve, most uint64) experimental.LinearMemory {
	k.l = k.allocator.Allocate(reserve, most).(*linear)
	return k.l
}

// moduleConfig gives a guest no name, runs nothing of it, and keeps wazero from seeding a
// source of random numbers for each instance: guests have their own.
var moduleConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(strings.NewReader(""))

// instantiate makes a guest whose memory is as its data segments say. None of its code
// has run.
func (p *Plugin) instantiate() (g *guest, err error) {
	k := &keeper{allocator: allocator{limit: uint64(p.manifest.MemoryPages) * memoryPage, all: &p.r.memory}}
	defer func() {
		if v := recover(); v != nil { // wazero panics where there is no memory
			g, err = nil, fmt.Errorf("instantiate: %v", v)
		}
	}()
	ctx := experimental.WithMemoryAllocator(context.Background(), k)
	mod, err := p.r.wasm.InstantiateModule(ctx, p.compiled, moduleConfig)
	if err != nil {
		return nil, fmt.Errorf("instantiate: %w", err)
	}
	g = &guest{mod: mod, memory: mod.ExportedMemory("memory"), linear: k.l}
	g.look(p)
	ok, more := false, false
	g.fuel, ok = mod.ExportedGlobal(meter.Fuel).(api.MutableGlobal)
	if g.rest, more = mod.ExportedGlobal(meter.Rest).(api.MutableGlobal); !ok || !more || g.memory == nil {
		g.close()
		return nil, errors.New("instantiate: the module is not metered")
	}
	for _, name := range p.globals {
		global, ok := mod.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			g.close()
			return nil, fmt.Errorf("instantiate: global %s is missing", name)
		}
		g.globals = append(g.globals, global)
	}
	return g, nil
}

// prepare makes the first instance, lets it initialise itself, and keeps what that left.
func (p *Plugin) prepare(start bool, until *deadline) error {
	g, err := p.instantiate()
	if err != nil {
		return transient("%w", err)
	}
	defer g.close()
	i := newInstance(p, g)
	i.until = until
	if p.r.interpreter { // what a compiler's code does in a third of a second takes a minute
		i.opening /= 8
	}
	base, _ := g.memory.Read(0, g.memory.Size())
	base = slices.Clone(base)
	for _, f := range []struct {
		name string
		call bool
	}{{meter.Start, start}, {"_initialize", p.initialises}} {
		if !f.call {
			continue
		}
		if _, err := i.invoke(g.mod.ExportedFunction(f.name), abi.HookOpen); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	minor, e := i.invoke(g.mod.ExportedFunction("gg_abi_1"), abi.HookOpen)
	switch {
	case e != nil:
		return fmt.Errorf("gg_abi_1: %w", e)
	case minor < 0 || minor > abi.Minor:
		return fmt.Errorf("it needs plugin interface %d.%d, this Ganglion has %d.%d", abi.Major, uint32(minor), abi.Major, abi.Minor)
	}
	memory, ok := g.memory.Read(0, g.memory.Size())
	if !ok {
		return errors.New("its memory cannot be read")
	}
	n := len(memory)
	for n > 0 && memory[n-1] == 0 {
		n--
	}
	p.image = initial{pages: uint32(len(memory) / memoryPage), memory: slices.Clone(memory[:n]), patches: differences(base, memory), time: i.time}
	for _, global := range g.globals {
		p.image.globals = append(p.image.globals, global.Get())
	}
	return nil
}

// take gives a guest in its initial state.
func (p *Plugin) take() (*guest, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		g := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return g, nil
	}
	p.mu.Unlock()
	g, err := p.instantiate()
	if err != nil {
		p.r.purge()
		if g, err = p.instantiate(); err != nil {
			return nil, fmt.Errorf("%w; plugins hold %d of %d MiB", err, p.r.memory.used.Load()>>20, p.r.memory.limit>>20)
		}
	}
	// Initialisation is not run again: what it left is put in place.
	if err := g.patch(&p.image); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// patch gives a guest whose code has not run the initial state.
func (g *guest) patch(to *initial) error {
	if have := g.memory.Size() / memoryPage; have < to.pages {
		if _, ok := g.memory.Grow(to.pages - have); !ok {
			return errors.New("there is no memory")
		}
	}
	for _, p := range to.patches {
		if !g.memory.Write(uint32(p.at), p.bytes) {
			return errors.New("the memory cannot be written")
		}
	}
	for i, v := range to.globals {
		g.globals[i].Set(v)
	}
	return nil
}

// put gives a guest a state: so many pages that begin with these bytes, zeros behind, and
// its globals.
func (g *guest) put(pages uint32, memory []byte, globals []uint64) error {
	have := g.memory.Size() / memoryPage
	if have > pages {
		return errors.New("memory does not shrink")
	}
	if have < pages {
		if _, ok := g.memory.Grow(pages - have); !ok {
			return errors.New("there is no memory")
		}
	}
	to, ok := g.memory.Read(0, pages*memoryPage)
	if !ok {
		return errors.New("the memory cannot be written")
	}
	wipe(to[copy(to, memory):])
	for i, v := range globals {
		g.globals[i].Set(v)
	}
	return nil
}

// wipe makes bytes zero. Blocks that are zero are only read: what a system gave for
// nothing takes memory once it is written to.
func wipe(b []byte) {
	const block = 4 << 10
	var zeros [block]byte
	for ; len(b) > 0; b = b[min(block, len(b)):] {
		if now := b[:min(block, len(b))]; !bytes.Equal(now, zeros[:len(now)]) {
			clear(now)
		}
	}
}

// drop closes the unused guests that nobody took since a time; the zero time: all.
func (p *Plugin) drop(since time.Time) {
	p.mu.Lock()
	n := len(p.idle)
	if !since.IsZero() {
		n = 0
		for n < len(p.idle) && !p.idle[n].since.After(since) {
			n++
		}
	}
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	switch {
	case p.reaper == nil:
	case len(p.idle) == 0:
		p.reaper.Stop()
		p.reaper = nil
	default:
		p.reaper.Reset(time.Until(p.idle[0].since.Add(idleTime)))
	}
	p.mu.Unlock()
	for _, g := range old {
		g.close()
	}
}

// giveBack takes a guest into the pool, in its initial state. One whose memory grew is
// closed: memory does not shrink, and memory.size would tell.
func (p *Plugin) giveBack(g *guest) {
	if g.memory.Size() != p.image.pages*memoryPage || !p.room() || g.put(p.image.pages, p.image.memory, p.image.globals) != nil {
		g.close()
		return
	}
	g.linear.refused = false
	g.look(p)
	g.since = time.Now()
	p.mu.Lock()
	if p.refs > 0 && len(p.idle) < p.r.o.idle() {
		p.idle = append(p.idle, g)
		g = nil
		if p.reaper == nil {
			p.reaper = time.AfterFunc(idleTime, func() { p.drop(time.Now().Add(-idleTime)) })
		}
	}
	p.mu.Unlock()
	if g != nil {
		g.close()
	}
}

// room tells whether the pool takes one more.
func (p *Plugin) room() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) < p.r.o.idle()
}
