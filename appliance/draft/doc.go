// Package draft guesses how a text goes on, so that a model can check several tokens
// in one batch instead of making them one by one.
//
// A [Guess] is a token with the odds that it comes. Guesses come from the text itself
// ([Lookup]: what followed the last few tokens before) or from a smaller model
// ([Model]). They never change a text: whoever runs them samples at each row exactly
// as it would without them and goes on only while the sampled token is the guessed
// one. All this package decides is how many rows are worth running ([Plan]), from
// the odds and from what steps of so many rows took ([Price]).
//
// Odds are measured, not believed: [Lookup] checks its guess of every token of the
// text, run or not, so a text that does not repeat itself costs nothing but that check.
//
// It imports gpu/engine, gpu/ops and plugins/sampling for the smaller model and
// nothing else of the project. No type is safe for concurrent use.
package draft
