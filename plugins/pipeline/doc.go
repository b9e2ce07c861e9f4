// Package pipeline runs the plugins of one sequence.
//
// It orders them by slot (constrain → bias → text | truncate → temperature → choose,
// with logit_bias and penalties of the host at the bar), fills their frames, calls
// their hooks, checks every action before anything of it is done, and applies it to the
// distribution of the step. It is the [sampling.Plugins] of a chain.
//
// A plugin that fails is handled by its policy: fail ends the request, skip takes the
// plugin out of it, restart opens it anew and replays the text once. Whatever a plugin
// did wrong, the distribution is then as it was before that plugin.
//
// The life of a sequence:
//
//	New → Prompt → Begin → (Plan → [chain: Early, Late, Choose] → Accept → Text)… → End → Close
//
// Plan needs no logits and runs while the model computes. Tokens that were forced are
// taken with [Pipeline.NextForced] and given to the chain's Force instead of a choice. Where Accept or Text asks for a
// rewind, the caller drops the tokens and calls Rewind. A plugin is never called for a
// token that was guessed ahead and did not come: guesses are checked by choosing, one
// after another, so a plugin's state needs no saving for them.
//
// A step needs the row of logits only where a plugin may do more than look at the best
// tokens and at statistics, cut to some of those and set the temperature; frames and tokens
// are the same with a row and without ([Pipeline.Needs]).
//
// A Pipeline belongs to one goroutine at a time, but for Needs, which may be called
// while Plan runs. It imports plugins/abi and plugins/sampling alone: an [Instance] is
// whatever behaves as one.
package pipeline
