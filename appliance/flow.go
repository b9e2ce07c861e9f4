package appliance

import (
	"strings"
	"unicode/utf8"

	"ganglion/gpu/tokenizer"
)

// textFlow turns the tokens of one completion into chunks of text. Bytes become
// whole characters (tokenizer.Decoder), stop strings are cut out, and what may still
// become one is held back; nothing else is.
//
// A token's text is its share of the visible text: the shares of all tokens joined
// are the text. A token belongs to the chunk that decides the last byte of its share.
type textFlow struct {
	dec  *tokenizer.Decoder
	stop stopMatcher

	text   []byte // whole characters so far, less a stop string that was found
	sent   int    // bytes of text in chunks
	tokens []Token
	ends   []int // ends[i]: where the share of tokens[i] ends in text
	given  int   // tokens in chunks
	hold   int   // tokens at the end that may still be taken back, and their text
	grows  bool  // the last token's share may still grow
}

func newTextFlow(v Vocabulary, stop *stopSet) textFlow {
	return textFlow{dec: tokenizer.NewDecoder(v), stop: stopMatcher{set: stop}}
}

// push adds a token and tells whether it completed a stop string.
func (f *textFlow) push(t Token) (stopped bool) {
	return f.join(t, f.dec.Push(t.ID))
}

// join adds a token and the text that came with it.
func (f *textFlow) join(t Token, text []byte) (stopped bool) {
	t.Offset = len(f.text)
	f.tokens = append(f.tokens, t)
	f.ends = append(f.ends, t.Offset)
	stopped = f.read(text)
	f.ends[len(f.ends)-1] = len(f.text)
	return stopped
}

// flush ends the text: an unfinished character becomes U+FFFD, which belongs to the
// last token. It tells whether that completed a stop string.
func (f *textFlow) flush() (stopped bool) { return f.close(f.dec.Flush()) }

// close ends the text with what is left of it, which belongs to the last token.
func (f *textFlow) close(text []byte) (stopped bool) {
	stopped = f.read(text)
	if n := len(f.ends); n > 0 {
		f.ends[n-1] = len(f.text)
	}
	return stopped
}

// read appends text up to the first stop string, which it cuts out.
func (f *textFlow) read(b []byte) (stopped bool) {
	end, length, ok := f.stop.scan(b)
	f.text = append(f.text, b[:end]...)
	if !ok {
		return false
	}
	f.text = f.text[:len(f.text)-length]
	for i := len(f.ends) - 1; i >= f.given; i-- {
		f.ends[i] = min(f.ends[i], len(f.text))
		f.tokens[i].Offset = min(f.tokens[i].Offset, len(f.text))
	}
	return true
}

// next returns the text that no stop string can take back any more; ok is false
// when there is none. A chunk's tokens are shared with the flow, which does not
// write to them again.
func (f *textFlow) next() (c Chunk, ok bool) {
	safe := len(f.text) - f.stop.held()
	n := len(f.tokens)
	if f.hold > 0 {
		if n -= f.hold; n <= 0 {
			return Chunk{}, false
		}
		safe = min(safe, f.ends[n-1])
	} else if f.grows {
		n--
	}
	if safe <= f.sent {
		return Chunk{}, false
	}
	return f.chunk(safe, n), true
}

// rewind takes back the last n tokens, which no chunk has, with their text.
func (f *textFlow) rewind(n int) {
	keep := len(f.tokens) - n
	f.tokens, f.ends = f.tokens[:keep], f.ends[:keep]
	end := 0
	if keep > 0 {
		end = f.ends[keep-1]
	}
	f.text = f.text[:end]
	f.dec.Flush()
	for i := range f.tokens {
		f.dec.Push(f.tokens[i].ID)
	}
	f.stop.state = 0
	f.stop.scan(f.text)
}

// last returns all that is left.
func (f *textFlow) last(reason FinishReason) Chunk {
	c := f.chunk(len(f.text), len(f.tokens))
	c.Finish = reason
	return c
}

// chunk releases text up to a byte and of the first n tokens those that end there.
func (f *textFlow) chunk(to, n int) Chunk {
	base := f.sent
	c := Chunk{Text: string(f.text[base:to])}
	from := f.given
	for f.given < n && f.ends[f.given] <= to {
		t := &f.tokens[f.given]
		if end := f.ends[f.given]; t.Offset >= base {
			t.Text = c.Text[t.Offset-base : end-base]
		} else {
			t.Text = string(f.text[t.Offset:end])
		}
		f.given++
	}
	c.Tokens = f.tokens[from:f.given:f.given]
	f.sent = to
	return c
}

// render returns how a token is shown by itself: control tokens by name, and
// U+FFFD for parts of characters.
func render(v Vocabulary, id int32) string {
	b := v.AppendPiece(nil, id, true)
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
