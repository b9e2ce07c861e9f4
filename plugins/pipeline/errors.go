package pipeline

import (
	"errors"
	"fmt"

	"ganglion/plugins/sampling"
)

// Error is how a plugin failed.
type Error struct {
	Code    string // trap, fuel, memory, action, nan, empty, quota, livelock, open, panic
	Plugin  string
	Version string
	Step    int // generated token that was being decided, −1 before the first
	Message string
}

func (e *Error) Error() string {
	return fmt.Sprintf("plugin %s@%s: %s at step %d: %s", e.Plugin, e.Version, e.Code, e.Step, e.Message)
}

// The codes of errors that are found here.
const (
	codeAction   = "action"
	codeNaN      = "nan"
	codeEmpty    = "empty"
	codeQuota    = "quota"
	codeLivelock = "livelock"
	codePanic    = "panic"
	codeOpen     = "open"
)

// codedError is an error of an instance that knows its code.
type codedError interface {
	error
	PluginCode() string
}

// fault makes an error of one plugin.
func (p *plugin) fault(step int, code, format string, args ...any) *Error {
	m := p.spec.Manifest
	return &Error{Code: code, Plugin: m.Name, Version: m.Version, Step: step, Message: fmt.Sprintf(format, args...)}
}

// opened makes an error of a plugin that did not open.
func (p *plugin) opened(err error) *Error {
	var coded codedError
	if errors.As(err, &coded) {
		return p.fault(-1, coded.PluginCode(), "%s", err)
	}
	return p.fault(-1, codeOpen, "%s", err)
}

// called makes an error of what an instance returned.
func (p *plugin) called(step int, err error) *Error {
	var coded codedError
	if errors.As(err, &coded) {
		return p.fault(step, coded.PluginCode(), "%s", err)
	}
	return p.fault(step, "trap", "%s", err)
}

// applied makes an error of what the distribution refused.
func (p *plugin) applied(step int, what string, err error) *Error {
	code := codeAction
	switch {
	case errors.Is(err, sampling.ErrNaN):
		code = codeNaN
	case errors.Is(err, sampling.ErrEmpty):
		code = codeEmpty
	}
	return p.fault(step, code, "%s: %s", what, err)
}
