// Package ops is the waist of the engine: operations are data.
//
// A model of an architecture builds a [Plan] once: a list of operation structs
// over column views of activation buffers, weights, KV caches and recurrent
// state. A [Backend] takes the plan and its weights, allocates what it needs
// ([Backend.Load]) and compiles it per batch shape ([Runtime.Compile]); after
// that a program is only re-submitted with a [Batch], which holds everything
// that changes from step to step.
//
// The package owns the vocabulary of operations, the checks on a plan, the
// memory layout of activations, the RoPE tables, the elementary functions of exact
// mode (exp, division, rsqrt built from add and multiply, so that every backend can
// give the same bits) and its products with quantised weights. The reduction orders are written down in
// gpu/DESIGN.md. It knows no file format, no architecture and no device; it
// imports gpu/tensor only.
package ops
