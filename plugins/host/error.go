package host

import (
	"fmt"
	"strings"
)

// Code says what kind of failure an Error is.
type Code string

// The codes.
const (
	CodeTrap     Code = "trap"     // the guest ended itself
	CodeFuel     Code = "fuel"     // it used all of its fuel
	CodeMemory   Code = "memory"   // it has no room for what it needs
	CodeAction   Code = "action"   // it answered what it may not
	CodeNaN      Code = "nan"      // a logit is not a number
	CodeEmpty    Code = "empty"    // no token is left
	CodeQuota    Code = "quota"    // it wrote too much
	CodeLivelock Code = "livelock" // it takes back the same tokens again and again
	CodeOpen     Code = "open"     // it refused the request
	CodePanic    Code = "panic"    // a host function failed: a fault of ours
	CodeStore    Code = "store"    // what it stored could not be written: the disk's fault
	CodeError    Code = "error"    // a hook returned a number below 0
)

// Error is the failure of a plugin in a request. It concerns this plugin alone.
type Error struct {
	Code            Code
	Plugin, Version string
	Step            int // index of the generated token
	Message         string
}

// Error names the plugin and the fact.
func (e *Error) Error() string {
	return fmt.Sprintf("host: plugin %s@%s: step %d: %s: %s", e.Plugin, e.Version, e.Step, e.Code, e.Message)
}

// PluginCode is the code, for those who know no package host.
func (e *Error) PluginCode() string { return string(e.Code) }

// Failure makes an error of a plugin for whoever judges its answers.
func (i *Instance) Failure(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Plugin: i.p.manifest.Name, Version: i.p.manifest.Version, Step: int(i.step), Message: fmt.Sprintf(format, args...)}
}

// trapMessage is the first line of wazero's error and the first of the stack.
func trapMessage(err error) string {
	text := err.Error()
	first, rest, _ := strings.Cut(text, "\n")
	first = strings.TrimSuffix(first, " (recovered by wazero)")
	first = strings.TrimPrefix(first, "wasm error: ")
	if _, stack, ok := strings.Cut(rest, "\n"); ok || strings.HasPrefix(rest, "wasm stack trace:") {
		line, _, _ := strings.Cut(strings.TrimSpace(stack), "\n")
		if line = strings.TrimSpace(line); line != "" {
			first += " in " + line
		}
	}
	const most = 300
	if len(first) > most {
		first = first[:most]
	}
	return strings.ToValidUTF8(first, "?")
}
