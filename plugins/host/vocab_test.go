package host

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"ganglion/plugins/abi"
)

// TestTokenizersOfOtherSizes: a model may have more tokens than its tokenizer, or fewer;
// what guests are told is as long as the frame says.
func TestTokenizersOfOtherSizes(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	size := letterVocab{}.Size()
	for _, vocab := range []int{size + 100, size, 7} {
		o := opening(0)
		o.Model.Vocab, o.Services.Vocab = vocab, letterVocab{}
		i := open(t, p, o)
		memory, _ := i.g.memory.Read(0, i.g.memory.Size())
		const argument, out = 60 << 10, 61 << 10
		words := (vocab + 31) / 32
		for k := range 4*words + 4 {
			memory[out+k] = 0xAA // of another mask
		}
		i.hook = abi.HookOpen
		i.fuel(1 << 30)
		n := i.vocabMask(maskPrefix, argument, uint32(copy(memory[argument:], "a")), out)
		ones, beyond := 0, 0
		for id := range 32 * words {
			if binary.LittleEndian.Uint32(memory[out+id/32*4:])>>(id%32)&1 == 1 {
				ones++
				if id >= vocab || id >= len(letterTokens) {
					beyond++
				}
			}
		}
		if int(n) != ones || ones == 0 || beyond > 0 {
			t.Errorf("%d tokens: %d said, %d set, %d of them beyond", vocab, n, ones, beyond)
		}
		if after := binary.LittleEndian.Uint32(memory[out+4*words:]); bits.OnesCount32(after) != 16 {
			t.Errorf("%d tokens: the word behind the mask is %x", vocab, after)
		}
		last := uint32(vocab - 1)
		want := int32(0)
		if vocab <= len(letterTokens) {
			want = int32(len(letterTokens[last]))
		}
		if got := i.tokBytes(last, out, 64); got != want {
			t.Errorf("%d tokens: the last has %d bytes, want %d", vocab, got, want)
		}
		if got := i.tokBytes(uint32(vocab), out, 64); got != abi.Invalid {
			t.Errorf("%d tokens: the one behind them gave %d", vocab, got)
		}
		if got := i.tokIsEOG(last); got != 0 {
			t.Errorf("%d tokens: the last ends a text: %d", vocab, got)
		}
		i.hook = 0
	}
}
