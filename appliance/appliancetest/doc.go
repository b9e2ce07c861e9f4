// Package appliancetest holds doubles for tests of everything above the engine: a
// model that emits a script ([Scripted]), a model whose logits depend on the hash of
// the whole sequence ([NewHashed]), an encoder of pictures and sounds
// ([Encoder]), a recorder in memory ([Recorder]) and a clock that stands still ([Clock]).
//
// Both models keep slots as the engine does: a slot holds the tokens that were run
// in it, a released slot keeps them for later prompts, and logits are computed from
// what the slot really holds. A scheduler that mixes up slots, positions or cached
// prefixes therefore changes the answers, which is what the tests look for.
package appliancetest
