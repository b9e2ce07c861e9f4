package abi

// Hook is the number of a hook, as it stands in the frame and in the counter of random
// words.
type Hook uint32

// The hooks. Number 0 is the draw of the host itself.
const (
	HookOpen     Hook = 1
	HookPrompt   Hook = 2
	HookPlan     Hook = 3
	HookLogits   Hook = 4
	HookChoose   Hook = 5
	HookAccept   Hook = 6
	HookText     Hook = 7
	HookEnd      Hook = 8
	HookRollback Hook = 9
	HookRun      Hook = 10

	Hooks = 11 // one more than the largest
)

var hookNames = [Hooks]string{"", "open", "prompt", "plan", "logits", "choose", "accept", "text", "end", "rollback", "run"}

// String is the hook's name in a manifest; its export has gg_ before it.
func (h Hook) String() string {
	if h >= Hooks {
		return "?"
	}
	return hookNames[h]
}

// HookNamed finds a hook by its name in a manifest; 0 is none.
func HookNamed(name string) Hook {
	for i, n := range hookNames {
		if n == name && i > 0 {
			return Hook(i)
		}
	}
	return 0
}

// HookSet is a set of hooks.
type HookSet uint32

// With is the set and one more hook.
func (s HookSet) With(h Hook) HookSet { return s | 1<<h }

// Has tells whether a hook is in the set.
func (s HookSet) Has(h Hook) bool { return s>>h&1 != 0 }

// Action is a set of action bits, what a hook returns.
type Action uint32

// The actions.
const (
	Edits     Action = 1 << iota // edit_n edits
	Mask                         // the mask holds for this step
	Cands                        // candidates were rewritten in place
	Full                         // the full row was rewritten in place
	Temp                         // temperature was set
	Token                        // token is the choice
	Force                        // out holds tokens
	Backtrack                    // take back tokens
	Stop                         // end the text
	Text                         // out holds text
	Idle                         // sleep until wake_step
)

var actionNames = [...]string{"EDITS", "MASK", "CANDS", "FULL", "TEMP", "TOKEN", "FORCE", "BACKTRACK", "STOP", "TEXT", "IDLE"}

// String lists the actions by name.
func (a Action) String() string {
	out := ""
	for i, n := range actionNames {
		if a>>i&1 != 0 {
			if out != "" {
				out += "|"
			}
			out += n
		}
	}
	if out == "" {
		return "none"
	}
	return out
}

var allowed = [Hooks]Action{
	HookPrompt: Text | Force | Stop,
	HookPlan:   Edits | Mask | Temp | Force | Stop | Idle,
	HookLogits: Edits | Cands | Full | Temp | Idle,
	HookChoose: Token,
	HookAccept: Force | Backtrack | Stop,
	HookText:   Text | Backtrack | Stop,
}

// Allowed are the actions that a hook may return.
func (h Hook) Allowed() Action {
	if h >= Hooks {
		return 0
	}
	return allowed[h]
}
