// Package synthetic writes models with random weights, for measuring: speed does not
// care what a weight is. It imports gpu/tensor only. Files are written tensor by
// tensor, so that a model larger than the memory can be made.
package synthetic

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"ganglion/gpu/tensor"
)

// Llama is the shape of a llama model; all matrices have one type.
type Llama struct {
	Layers, Embed, FeedForward int
	Heads, KVHeads             int
	Vocab, Context             int
	Type                       tensor.Type // Q4_0, Q4_K or Q8_0
}

// Llama1B is the shape of TinyLlama, 1.1 billion weights.
func Llama1B(t tensor.Type) Llama {
	return Llama{Layers: 22, Embed: 2048, FeedForward: 5632, Heads: 32, KVHeads: 4, Vocab: 32000, Context: 2048, Type: t}
}

// matrix is one tensor of the file; a single row is a vector of ones in F32.
type matrix struct {
	name       string
	cols, rows int
	typ        tensor.Type
}

func (l Llama) tensors() []matrix {
	kv := l.Embed / l.Heads * l.KVHeads
	list := []matrix{{"token_embd.weight", l.Embed, l.Vocab, l.Type}}
	for i := range l.Layers {
		for _, m := range []matrix{
			{"attn_norm", l.Embed, 1, tensor.F32}, {"attn_q", l.Embed, l.Embed, l.Type}, {"attn_k", l.Embed, kv, l.Type},
			{"attn_v", l.Embed, kv, l.Type}, {"attn_output", l.Embed, l.Embed, l.Type}, {"ffn_norm", l.Embed, 1, tensor.F32},
			{"ffn_gate", l.Embed, l.FeedForward, l.Type}, {"ffn_up", l.Embed, l.FeedForward, l.Type}, {"ffn_down", l.FeedForward, l.Embed, l.Type},
		} {
			m.name = fmt.Sprintf("blk.%d.%s.weight", i, m.name)
			list = append(list, m)
		}
	}
	return append(list, matrix{"output_norm.weight", l.Embed, 1, tensor.F32}, matrix{"output.weight", l.Embed, l.Vocab, l.Type})
}

// Write writes the model to path, which it creates or replaces. The same seed gives
// the same file.
func (l Llama) Write(path string, seed uint64) (err error) {
	switch l.Type {
	case tensor.Q4_0, tensor.Q4_K, tensor.Q8_0:
	default:
		return fmt.Errorf("synthetic: type %v: want Q4_0, Q4_K or Q8_0", l.Type)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			os.Remove(path) // half a model would be taken for one the next time
		}
	}()
	w := &writer{w: bufio.NewWriterSize(f, 1<<20)}
	l.header(w)
	rng := rand.New(rand.NewPCG(seed, 0))
	w.pad()
	for _, m := range l.tensors() {
		if err := m.write(w, rng); err != nil {
			return err
		}
		w.pad()
	}
	if w.err != nil {
		return w.err
	}
	return w.w.(*bufio.Writer).Flush()
}

// header writes the keys and the tensor index.
func (l Llama) header(w *writer) {
	list := l.tensors()
	w.bytes([]byte("GGUF"))
	w.u32(3)
	w.u64(uint64(len(list)))
	w.u64(13)
	w.text("general.architecture", "llama")
	w.text("general.name", fmt.Sprintf("synthetic llama %v", l.Type))
	for _, k := range []struct {
		key   string
		value int
	}{
		{"llama.block_count", l.Layers}, {"llama.embedding_length", l.Embed}, {"llama.feed_forward_length", l.FeedForward},
		{"llama.attention.head_count", l.Heads}, {"llama.attention.head_count_kv", l.KVHeads}, {"llama.context_length", l.Context},
	} {
		w.key(k.key, typeU32)
		w.u32(uint32(k.value))
	}
	w.key("llama.attention.layer_norm_rms_epsilon", typeF32)
	w.u32(math.Float32bits(1e-5))
	w.text("tokenizer.ggml.model", "llama")
	l.vocabulary(w)
	var at uint64
	for _, m := range list {
		w.str(m.name)
		dims := []int{m.cols, m.rows}
		if m.rows == 1 {
			dims = dims[:1]
		}
		w.u32(uint32(len(dims)))
		for _, d := range dims {
			w.u64(uint64(d))
		}
		w.u32(uint32(m.typ))
		w.u64(at)
		at = align(at + m.bytes())
	}
}

// vocabulary is <unk>, <s>, </s>, the bytes, and words that stand for nothing.
func (l Llama) vocabulary(w *writer) {
	const normal, unknown, control, single = 1, 2, 3, 6
	w.array("tokenizer.ggml.tokens", typeString, l.Vocab)
	kinds := make([]uint32, l.Vocab)
	for i := range l.Vocab {
		switch {
		case i == 0:
			w.str("<unk>")
			kinds[i] = unknown
		case i < 3:
			w.str([]string{"<s>", "</s>"}[i-1])
			kinds[i] = control
		case i < 259:
			w.str(fmt.Sprintf("<0x%02X>", i-3))
			kinds[i] = single
		default:
			w.str(fmt.Sprintf("▁t%d", i))
			kinds[i] = normal
		}
	}
	w.array("tokenizer.ggml.scores", typeF32, l.Vocab)
	for i := range l.Vocab {
		w.u32(math.Float32bits(-float32(i)))
	}
	w.array("tokenizer.ggml.token_type", typeI32, l.Vocab)
	for _, k := range kinds {
		w.u32(k)
	}
}

func (m matrix) bytes() uint64 {
	n, err := tensor.RowBytes(m.typ, m.cols)
	if err != nil {
		return 0 // write reports it
	}
	return uint64(n) * uint64(m.rows)
}

// write writes the data: random codes under scales that give a deviation of about
// 1/√cols, so that activations keep their size from layer to layer.
func (m matrix) write(w *writer, rng *rand.Rand) error {
	n, err := tensor.RowBytes(m.typ, m.cols)
	if err != nil {
		return fmt.Errorf("synthetic: tensor %q: %w", m.name, err)
	}
	row := make([]byte, n)
	if m.typ == tensor.F32 {
		for i := range m.cols {
			binary.LittleEndian.PutUint32(row[4*i:], math.Float32bits(1))
		}
		w.bytes(row)
		return nil
	}
	half := func(block []byte, v float64) { binary.LittleEndian.PutUint16(block, tensor.F32ToF16(float32(v))) }
	unit := 1 / math.Sqrt(float64(m.cols))
	for range m.rows {
		for i := 0; i < n; i += 4 {
			var t [4]byte
			binary.LittleEndian.PutUint32(t[:], rng.Uint32())
			copy(row[i:], t[:])
		}
		for block := row; len(block) > 0; block = block[m.typ.BlockBytes():] {
			switch m.typ {
			case tensor.Q4_0: // codes of deviation 4.6
				half(block, unit/4.6)
			case tensor.Q8_0: // of 74
				half(block, unit/74)
			default: // Q4_K: all scales and minima are 32, the minimum is the codes' mean
				half(block, unit/4.6/32)
				half(block[2:], unit/4.6/32*7.5)
				copy(block[4:], []byte{160, 160, 160, 160, 160, 160, 160, 160, 0, 0, 0, 0})
			}
		}
		w.bytes(row)
	}
	return w.err
}

// The value types of GGUF that header needs.
const (
	typeU32    = 4
	typeI32    = 5
	typeF32    = 6
	typeString = 8
	typeArray  = 9
)

// writer appends little-endian values and keeps the first error.
type writer struct {
	w   io.Writer
	n   uint64
	err error
}

func (w *writer) bytes(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
		w.n += uint64(len(b))
	}
}

func (w *writer) u32(v uint32) { w.bytes(binary.LittleEndian.AppendUint32(nil, v)) }
func (w *writer) u64(v uint64) { w.bytes(binary.LittleEndian.AppendUint64(nil, v)) }
func (w *writer) str(s string) { w.u64(uint64(len(s))); w.bytes([]byte(s)) }

func (w *writer) key(name string, typ uint32) { w.str(name); w.u32(typ) }
func (w *writer) text(name, value string)     { w.key(name, typeString); w.str(value) }
func (w *writer) array(name string, elem uint32, n int) {
	w.key(name, typeArray)
	w.u32(elem)
	w.u64(uint64(n))
}

// align rounds up to GGUF's default alignment of tensor data.
func align(n uint64) uint64 { return (n + 31) &^ 31 }

func (w *writer) pad() { w.bytes(make([]byte, align(w.n)-w.n)) }
