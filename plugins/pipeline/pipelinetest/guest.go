package pipelinetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
)

// Code is what a hook does with the frame.
type Code func(f *Frame) abi.Action

// Plugin is a plugin. Its zero values take the defaults of a manifest, except that it
// gets buffers for all views.
type Plugin struct {
	Manifest abi.Manifest
	OnError  pipeline.Policy
	// New makes the hooks of one instance; what they share is its state.
	New func() map[abi.Hook]Code
	// Hooks are the hooks of all instances, where New is nil.
	Hooks map[abi.Hook]Code
	// Open, when not nil, is called before an instance is made.
	Open func() error
	// OpenFuel and OpenTime are what it says that took.
	OpenFuel int64
	OpenTime time.Duration
	// Save and Load, when not nil, are the state of all instances for Snapshot and
	// Restore.
	Save func() []byte
	Load func([]byte)

	Candidates, Edits int // room for them; 0: 256 and 4,096; below 0: none
	Mask, Full        bool
	Gather            []int32 // tokens whose logits it gets
	History           int     // room for tokens; 0: 4,096

	opened, closed atomic.Int64
}

// Opened tells how many instances there were so far.
func (p *Plugin) Opened() int { return int(p.opened.Load()) }

// Closed tells how many instances were closed.
func (p *Plugin) Closed() int { return int(p.closed.Load()) }

// Spec returns the plugin as one request chose it, for a vocabulary.
func (p *Plugin) Spec(vocab int) pipeline.Spec {
	if p.OnError == "" {
		p.OnError = pipeline.Fail
	}
	if p.Manifest.Version == "" {
		p.Manifest.Version = "1.0.0"
	}
	if p.Manifest.Hooks == 0 {
		p.Manifest.Hooks = p.Has()
	}
	if p.Manifest.Draft == "" {
		p.Manifest.Draft = abi.DraftSnapshot
	}
	return pipeline.Spec{Manifest: &p.Manifest, Hash: "hash of " + p.Manifest.Name, OnError: p.OnError, Open: func(spent pipeline.Spent) (pipeline.Instance, error) {
		spent(p.OpenFuel, p.OpenTime)
		if p.Open != nil {
			if err := p.Open(); err != nil {
				return nil, err
			}
		}
		p.opened.Add(1)
		g := &guest{p: p, hooks: p.Hooks}
		if p.New != nil {
			g.hooks = p.New()
		}
		g.f.layout(p, vocab)
		return g, nil
	}}
}

// Has are the hooks of all instances, as a host knows them that looked at the file.
func (p *Plugin) Has() (hooks abi.HookSet) {
	for h := range p.Hooks {
		hooks = hooks.With(h)
	}
	return hooks
}

// Spec of several plugins.
func Specs(vocab int, plugins ...*Plugin) []pipeline.Spec {
	var s []pipeline.Spec
	for _, p := range plugins {
		s = append(s, p.Spec(vocab))
	}
	return s
}

// Error is an error of a hook, which panics with it.
type Error struct{ Code string }

func (e *Error) Error() string { return "the test's " + e.Code }

// PluginCode is the error's code.
func (e *Error) PluginCode() string { return e.Code }

// guest is one instance.
type guest struct {
	p      *Plugin
	hooks  map[abi.Hook]Code
	f      Frame
	closed bool
}

var _ pipeline.Instance = (*guest)(nil)

func (g *guest) Has(h abi.Hook) bool { return g.hooks[h] != nil }
func (g *guest) Frame() []byte       { return g.f.B }
func (g *guest) Layout() *abi.Layout { return &g.f.L }
func (g *guest) Gathered() []int32   { return g.p.Gather }

func (g *guest) Call(h abi.Hook) (a abi.Action, fuel int64, err error) {
	if g.closed {
		return 0, 0, fmt.Errorf("pipelinetest: %s of a closed instance", h)
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			err = e
		default:
			panic(e) // a fault of the test, or one that it is about
		}
	}()
	if h == abi.HookEnd && g.hooks[h] == nil {
		return 0, 0, nil
	}
	return g.hooks[h](&g.f), 10, nil
}

func (g *guest) Snapshot(dst []byte) ([]byte, error) {
	if g.p.Save == nil {
		return dst, nil
	}
	return append(dst, g.p.Save()...), nil
}

func (g *guest) Restore(b []byte) error {
	if g.p.Load != nil {
		g.p.Load(b)
	}
	return nil
}

func (g *guest) Close() error {
	if !g.closed {
		g.closed = true
		g.p.closed.Add(1)
	}
	return nil
}

// Frame is a frame as code sees it.
type Frame struct {
	B     []byte
	L     abi.Layout
	vocab int
}

// layout makes the frame and its buffers.
func (f *Frame) layout(p *Plugin, vocab int) {
	or := func(v, d int) int {
		if v == 0 {
			return d
		}
		return v
	}
	f.vocab = vocab
	size := abi.HeaderBytes
	take := func(n int) int {
		at := size
		size += (n + 63) / 64 * 64
		return at
	}
	l := &f.L
	l.CandCap = max(or(p.Candidates, 256), 0)
	l.CandIDs, l.CandLogits = take(4*l.CandCap), take(4*l.CandCap)
	l.GatherN = len(p.Gather)
	l.GatherIDs, l.GatherLogits = take(4*l.GatherN), take(4*l.GatherN)
	l.EditCap = max(or(p.Edits, 4096), 0)
	l.Edits = take(8 * l.EditCap)
	l.HistoryCap = or(p.History, 4096)
	l.History = take(4 * l.HistoryCap)
	l.OutCap, l.InCap = 4*4096, 4096
	l.Out, l.In = take(l.OutCap), take(l.InCap)
	if p.Mask {
		l.Mask = take((vocab + 31) / 32 * 4)
	}
	if p.Full {
		l.Full = take(4 * vocab)
	}
	f.B = make([]byte, size)
}

// U and F read a word of the header, Put and PutF write it.
func (f *Frame) U(off int) int     { return int(binary.LittleEndian.Uint32(f.B[off:])) }
func (f *Frame) F(off int) float32 { return math.Float32frombits(uint32(f.U(off))) }
func (f *Frame) Put(off, v int)    { binary.LittleEndian.PutUint32(f.B[off:], uint32(v)) }
func (f *Frame) PutF(off int, v float32) {
	binary.LittleEndian.PutUint32(f.B[off:], math.Float32bits(v))
}

// Cand returns candidate i.
func (f *Frame) Cand(i int) (id int32, logit float32) {
	return int32(f.U(f.L.CandIDs + 4*i)), f.F(f.L.CandLogits + 4*i)
}

// SetCand writes candidate i.
func (f *Frame) SetCand(i int, id int32, logit float32) {
	f.Put(f.L.CandIDs+4*i, int(id))
	f.PutF(f.L.CandLogits+4*i, logit)
}

// Edit adds an edit; the first one of a call is edit 0.
func (f *Frame) Edit(i int, id int32, op abi.Op, v float32) abi.Action {
	at := f.L.Edits + abi.EditBytes*i
	f.Put(at, int(uint32(id)|uint32(op)<<abi.EditShift))
	f.PutF(at+4, v)
	f.Put(abi.OffEditN, i+1)
	return abi.Edits
}

// Allow sets the mask to some tokens.
func (f *Frame) Allow(ids ...int32) abi.Action {
	mask := f.B[f.L.Mask : f.L.Mask+(f.vocab+31)/32*4]
	clear(mask)
	for _, id := range ids {
		mask[id/8] |= 1 << (id % 8)
	}
	return abi.Mask
}

// Force gives tokens that come next.
func (f *Frame) Force(ids ...int32) abi.Action {
	for i, id := range ids {
		f.Put(f.L.Out+4*i, int(id))
	}
	f.Put(abi.OffOutN, len(ids))
	return abi.Force
}

// Text gives a text.
func (f *Frame) Text(s string) abi.Action {
	copy(f.B[f.L.Out:f.L.Out+f.L.OutCap], s)
	f.Put(abi.OffOutN, len(s))
	return abi.Text
}

// In returns the text that came in.
func (f *Frame) In() string { return string(f.B[f.L.In : f.L.In+f.U(abi.OffInN)]) }

// Accepted returns the tokens that were accepted.
func (f *Frame) Accepted() (ids []int32) {
	for i := range f.U(abi.OffInN) {
		ids = append(ids, int32(f.U(f.L.In+4*i)))
	}
	return ids
}

// Tokens returns the history.
func (f *Frame) Tokens() (ids []int32) {
	for i := range f.U(abi.OffHistoryLen) {
		ids = append(ids, int32(f.U(f.L.History+4*i)))
	}
	return ids
}

// Rewind takes tokens back.
func (f *Frame) Rewind(n int) abi.Action {
	f.Put(abi.OffBacktrack, n)
	return abi.Backtrack
}

// Stop ends the text.
func (f *Frame) Stop(r abi.StopReason) abi.Action {
	f.Put(abi.OffStopReason, int(r))
	return abi.Stop
}

// Temperature sets it.
func (f *Frame) Temperature(t float32) abi.Action {
	f.PutF(abi.OffTemperature, t)
	return abi.Temp
}

// Sleep lasts until a step.
func (f *Frame) Sleep(until int) abi.Action {
	f.Put(abi.OffWakeStep, until)
	return abi.Idle
}
