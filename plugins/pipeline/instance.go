package pipeline

import (
	"time"

	"ganglion/plugins/abi"
)

// Instance is a plugin as one sequence runs it. It belongs to one goroutine at a time.
type Instance interface {
	// Has tells whether the plugin has a hook.
	Has(h abi.Hook) bool
	// Frame returns the frame with its buffers in the plugin's memory, valid until the
	// next call.
	Frame() []byte
	// Layout tells where the buffers are, from the start of the frame. It never
	// changes.
	Layout() *abi.Layout
	// Gathered are the tokens whose logits the plugin wants, in the order of the buffer.
	Gathered() []int32
	// Call calls a hook for a step and returns its actions and the fuel it burnt.
	// Actions that the hook may not return are an error. The end of a text is told to
	// plugins without a hook for it too.
	Call(h abi.Hook) (actions abi.Action, fuel int64, err error)
	// Snapshot appends the plugin's state to dst; Restore puts it back.
	Snapshot(dst []byte) ([]byte, error)
	Restore(state []byte) error
	// Close gives the instance back. It may be called twice.
	Close() error
}

// Policy says what happens when a plugin fails.
type Policy string

// The policies.
const (
	Fail    Policy = "fail"    // the request fails
	Skip    Policy = "skip"    // the request goes on without the plugin
	Restart Policy = "restart" // once: a new instance reads the text again; then as Fail
)

// Spec is a plugin chosen for a request.
type Spec struct {
	Manifest *abi.Manifest
	Hash     string // of its file
	OnError  Policy
	Required bool // chosen by the operator: greedy requests do not leave it out
	// Open makes an instance that is ready for hooks, nil where the plugin is not
	// interested in this request. It tells spent what that took, also where it failed. An
	// error that wraps one of a context says that the request ended, and is no failure.
	Open func(spent Spent) (Instance, error)
	// Left, when not nil, hears that the plugin is no longer in a request that goes on.
	Left func()
}

// Spent hears what opening a plugin took.
type Spent func(fuel int64, took time.Duration)

// greedyHooks are the hooks of plugins that greedy requests may leave out: the others see
// or do more than to change logits.
var greedyHooks = abi.HookSet(0).With(abi.HookLogits).With(abi.HookChoose)

// idleWhenGreedy tells whether a request that always takes the likeliest token is the same
// without the plugin.
func (s *Spec) idleWhenGreedy() bool {
	m := s.Manifest
	return m.ArgmaxInvariant && !s.Required && m.Hooks != 0 && m.Hooks&^greedyHooks == 0
}
