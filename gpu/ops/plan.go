package ops

import (
	"errors"
	"fmt"

	"ganglion/gpu/tensor"
)

// Buf names an activation buffer of a plan: an index into Plan.Buffers.
type Buf int32

// RowSet says how many rows an activation buffer has.
type RowSet uint8

const (
	// PerRow buffers have one row per row of the batch.
	PerRow RowSet = iota
	// PerOut buffers have one row per output row of the batch (Batch.Outs).
	PerOut
)

// Elem is the element type of an activation buffer.
type Elem uint8

const (
	// F32 activations are 32-bit floats.
	F32 Elem = iota
	// I32 buffers hold indices (the experts a router chose).
	I32
)

// Buffer describes one activation buffer: [rows, Width] elements, row-major.
type Buffer struct {
	Name  string
	Width int
	Rows  RowSet
	Elem  Elem
}

// View is a column range of a buffer: columns [Off, Off+Width) of every row.
// Splitting a fused projection is therefore free.
type View struct {
	Buf   Buf
	Off   int
	Width int
}

// Cols returns the sub-range [off, off+width) of the view's own columns.
func (v View) Cols(off, width int) View {
	return View{Buf: v.Buf, Off: v.Off + off, Width: width}
}

// Weight is a tensor of the model file. Data is the file's own bytes (usually a
// read-only mapping) in the block format of Type, row after row; it must stay
// valid until the Runtime that loaded it is closed.
type Weight struct {
	Name    string
	Type    tensor.Type
	Cols    int // length of one row, GGUF Dims[0]
	Rows    int // rows of one matrix; 1 for a vector
	Experts int // matrices in the stack; 1 for a plain matrix
	Data    []byte
}

// Cache describes one layer's KV cache. Layers that share a cache refer to the
// same index, and widths may differ from layer to layer. Where the positions of a
// sequence lie says Paging.
type Cache struct {
	Name     string
	KVHeads  int
	KeyDim   int // width of one key head
	ValueDim int // width of one value head
	Window   int // sliding window in positions, the token itself included; 0 = all
}

// State describes recurrent state kept per sequence: Floats float32 values, zero
// at position 0.
type State struct {
	Name   string
	Floats int
}

// Plan is one architecture's forward pass with its weights. It is built once by
// gpu/model, checked by Validate, and never changed afterwards.
type Plan struct {
	Name    string
	Vocab   int // columns of Logits
	Tokens  int // token ids that a batch may name: 0 is Vocab, NoTokens none (see Batch.Embeds)
	Embed   int // width of the residual stream
	Slices  int // further vectors as wide that a row of Batch.Embeds has behind the first, see Deepstack
	Spans   int // columns of Batch.Spans
	Context int // positions the model was trained for (GGUF context_length)

	Adapters int // columns of Batch.Scales

	Weights []*Weight
	Buffers []Buffer
	Caches  []Cache
	States  []State
	Tables  []*RoPETable
	Lists   []List // of Batch.Lists
	Ops     []Op

	// Logits is the [outs, Vocab] buffer that a run reads back from.
	Logits View
}

// NoTokens is Plan.Tokens of a plan whose rows all come from Batch.Embeds.
const NoTokens = -1

// TokenIDs is how many token ids a batch may name.
func (p *Plan) TokenIDs() int {
	if p.Tokens == 0 {
		return p.Vocab
	}
	return max(p.Tokens, 0)
}

// EmbedWidth is the width of a row of Batch.Embeds.
func (p *Plan) EmbedWidth() int { return p.Embed * (1 + p.Slices) }

// ErrPlan is wrapped by every error of Plan.Validate.
var ErrPlan = errors.New("ops: invalid plan")

// Validate checks that each operation's operands exist, have fitting widths and row
// sets and are written before they are read, and that weights, caches, states and
// tables are whole. It is the guard of every backend: what passes cannot make one read
// outside its memory.
func (p *Plan) Validate() error {
	c := checker{p: p, written: make([][]bool, len(p.Buffers)), experts: map[Buf]int{}}
	if err := c.parts(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrPlan, p.Name, err)
	}
	for i, op := range p.Ops {
		if err := c.op(op); err != nil {
			return fmt.Errorf("%w: %s: operation %d (%s): %w", ErrPlan, p.Name, i, op.Name(), err)
		}
	}
	if err := c.logits(); err != nil {
		return fmt.Errorf("%w: %s: logits: %w", ErrPlan, p.Name, err)
	}
	return nil
}

// WeightBytes is the size of all weights as they stand in the file.
func (p *Plan) WeightBytes() int64 {
	var n int64
	for _, w := range p.Weights {
		n += int64(len(w.Data))
	}
	return n
}
