// Package tokenizer turns text into tokens and tokens into text.
//
// It owns the four families of tokenizers that GGUF files carry
// (tokenizer.ggml.model): SentencePiece with scored merges ("llama"),
// byte-level BPE with a named pre-tokenizer ("gpt2") and its raw UTF-8 variant
// ("gemma4"), WordPiece ("bert") and the unigram language model ("t5"); the
// search for special tokens in a prompt; the rendering of tokens, whole
// ([Tokenizer.Decode]) and streamed ([Decoder]); and the set of tokens that end
// a generation.
//
// Promises: ids equal those of llama.cpp for text that is valid UTF-8 (README.md
// lists the deliberate differences); the running time is near-linear in the
// length of the text and memory is bounded by a multiple of it; no input makes
// it panic; every method of [Tokenizer] may be called concurrently.
//
// It reads a model file through the small interface [Metadata] and imports no
// other package of the engine.
//
// Sources: Sennrich et al. 2016 (BPE), Kudo 2018 (unigram model), Kudo and
// Richardson 2018 (SentencePiece), Schuster and Nakajima 2012 (WordPiece), the
// GGUF specification, and the tokenizer.json files of the models for the
// pre-tokenizer expressions.
package tokenizer
