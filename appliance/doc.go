// Package appliance turns a request into a completion.
//
// It resolves every parameter of a request (value and origin), checks it against
// the model, opens the request's record, tokenises, queues, and runs the decode
// loop: one scheduler forms batches from the rows of all running sequences, each
// sequence's sampling chain picks a token, and the detokeniser, stop matcher and
// UTF-8 hold-back release text. It also finds, loads and swaps models.
//
// The package knows neither HTTP nor SQL: web calls it and storage implements its
// [Recorder]. It imports gpu/engine, gpu/tokenizer and plugins/sampling.
package appliance
