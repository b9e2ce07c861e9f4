package tokenizer

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// newRand returns a generator of the same draws at each run; GANGLION_SEED=N gives others.
func newRand(t testing.TB) *rand.Rand {
	seed := uint64(1)
	if s := os.Getenv("GANGLION_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("GANGLION_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// alphabets are ranges of characters that the rules tell apart.
var alphabets = [][2]rune{
	{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'},
	{0x00, 0x1F}, {0x7F, 0x9F}, {0xA0, 0xFF}, {0x100, 0x24F}, {0x2B0, 0x2FF}, {0x300, 0x36F},
	{0x370, 0x52F}, {0x590, 0x6FF}, {0x900, 0x9FF}, {0xE00, 0xEFF}, {0x1780, 0x17FF},
	{0x1E00, 0x1FFF}, {0x2000, 0x206F}, {0x20A0, 0x2BFF}, {0x3000, 0x30FF}, {0x4E00, 0x9FFF},
	{0xAC00, 0xD7FF}, {0xFE00, 0xFFFF}, {0x10000, 0x1FFFF}, {0x20000, 0x2FFFF}, {0, 0x10FFFF},
}

// fragments are texts in which the rules disagree most.
var fragments = []string{
	"'s", "'S", "'re", "'RE", "'ll", "'lL", "'d", "'T", "''", "'", "'ve", "'VE", "'m", " '", "’s",
	"\r\n", "\n", "\r", "\n\n", " \n", "\t", " ", "  ", "   ", "\u00a0", "\u3000", "\u2028", "\u2029", "\u0085", "\u200b",
	"123", "1234", "12", "٣", "½", "Ⅷ", "²", "//", "/\n", "--", "...", "!\n", "。", "、", "$", "`", "^", "_",
	"the", " the", "Hello", "camelCase", "ABCdef", "привет", "ПРИвет", "中文", "ひらがな", "한국", "हिन्दी", "ไทย", "ភាសា", "e\u0301", "\u0301",
	"ǅ", "ʰ", "ß", "ſ", "K", "🦙", "👨\u200d👩", "\ufeff", "\ufffd", "▁", "<s>", "</s>", "<bos>", "<unk>", "<pad>", "<|endoftext|>", "<|im_start|>", "<0x41>",
}

// randomText returns up to n random parts: fragments, runs from one alphabet,
// single characters from any. It is valid UTF-8.
func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		switch r.IntN(3) {
		case 0:
			b.WriteString(fragments[r.IntN(len(fragments))])
		case 1:
			a := alphabets[r.IntN(len(alphabets))]
			for range 1 + r.IntN(4) {
				writeValid(&b, a[0]+r.Int32N(a[1]-a[0]+1))
			}
		default:
			a := alphabets[r.IntN(len(alphabets))]
			writeValid(&b, a[0]+r.Int32N(a[1]-a[0]+1))
		}
	}
	return b.String()
}

func writeValid(b *strings.Builder, c rune) {
	if utf8.ValidRune(c) {
		b.WriteRune(c)
	}
}
