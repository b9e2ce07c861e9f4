// Package engine is a loaded model on a device: it opens the model file, asks
// gpu/model for the plan, checks a memory forecast, loads the plan into a backend
// and runs batches of rows over slots that remember their tokens (gpu/kvcache).
//
// It imports gpu/model, gpu/kvcache, gpu/tokenizer, gpu/gguf and gpu/ops; backends
// are handed in, so it knows none of them.
package engine
