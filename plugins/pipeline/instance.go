package pipeline

import (
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
	Required bool // chosen by the operator
	// Open makes an instance that is ready for hooks, nil where the plugin is not
	// interested in this request.
	Open func() (Instance, error)
}
