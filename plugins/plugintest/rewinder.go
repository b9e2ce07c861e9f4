package plugintest

import (
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
)

// rewinder is a plugin in Go that takes tokens back, each time at one place once. It is
// how the others are made to go back to a former state.
type rewinder struct {
	when  func(step int) int // tokens to take back after the token of a step
	asked map[int]bool
	frame []byte
	l     abi.Layout
}

const rewinderHoldback = 16

var rewinderManifest = &abi.Manifest{
	Name: "plugintest-rewinder", Version: "1.0.0", Slot: abi.SlotText,
	View: abi.View{Holdback: rewinderHoldback}, Draft: abi.DraftSnapshot, OnError: abi.OnErrorFail,
}

func newRewinder(when func(step int) int) *rewinder {
	r := &rewinder{when: when, asked: map[int]bool{}}
	r.l = *rewinderManifest.Lay(abi.HookSet(0).With(abi.HookAccept), abi.Extent{Vocab: 1, Tokens: 1})
	r.frame = make([]byte, r.l.Size)
	return r
}

func (r *rewinder) spec() pipeline.Spec {
	return pipeline.Spec{Manifest: rewinderManifest, OnError: pipeline.Fail, Open: func(pipeline.Spent) (pipeline.Instance, error) { return r, nil }}
}

func (r *rewinder) Has(h abi.Hook) bool                 { return h == abi.HookAccept }
func (r *rewinder) Frame() []byte                       { return r.frame }
func (r *rewinder) Layout() *abi.Layout                 { return &r.l }
func (r *rewinder) Gathered() []int32                   { return nil }
func (r *rewinder) Snapshot(dst []byte) ([]byte, error) { return dst, nil }
func (r *rewinder) Restore([]byte) error                { return nil }
func (r *rewinder) Close() error                        { return nil }

func (r *rewinder) Call(abi.Hook) (abi.Action, int64, error) {
	step := int(get(r.frame, abi.OffStep))
	n := r.when(step)
	if n == 0 || r.asked[step] {
		return 0, 0, nil
	}
	r.asked[step] = true
	put(r.frame, abi.OffBacktrack, uint32(n))
	return abi.Backtrack, 0, nil
}
