package appliance

import (
	"context"
	"unicode/utf8"

	"ganglion/appliance/media/film"
	"ganglion/gpu/engine"
	"ganglion/gpu/tokenizer"
)

// spread is the media of one prompt: which of its positions hold rows of what.
type spread struct {
	attachments []*attachment
	spans       []mediaSpan // in the order of the prompt
	shift       int         // by which positions behind all media are less than their index
	axes        bool        // a picture has positions of its own
}

// mediaSpan is one encoded piece in a prompt.
type mediaSpan struct {
	from   int // position of its first row
	shift  int // by which positions of what is before it are less than their index
	piece  Piece
	item   int // in attachments
	index  int // among the encoded pieces of the item
	width  int
	values []float32 // [piece.Tokens, width], once it is encoded
}

// end is the position behind the piece.
func (s *mediaSpan) end() int { return s.from + s.piece.Tokens }

// tokenizeMedia returns the tokens of a prompt with media: texts between them are read each
// on its own, as is what frames them; positions of encoded rows hold -1 until they have ids.
func tokenizeMedia(ctx context.Context, r *Request, v Vocabulary, plainSpecial bool, e Encoder, engine *film.Engine) ([]int32, *spread, *Error) {
	if r.PromptTokens != nil {
		return nil, nil, Errorf(CodeInvalid, "prompt", "a prompt of token ids has no place for media; send it as text")
	}
	if !utf8.ValidString(r.Prompt) {
		return nil, nil, errNotUTF8
	}
	s := &spread{}
	for i := range r.Media {
		a, fault := r.Headers.attach(ctx, i, &r.Media[i], e, engine)
		if fault != nil {
			return nil, nil, fault
		}
		s.attachments = append(s.attachments, a)
	}
	ids, fault := s.write(r.Prompt, r.Media, v, plainSpecial, e.Info())
	if fault != nil {
		return nil, nil, fault
	}
	return ids, s, nil
}

// write puts the attachments, which are those of media, into a prompt and returns its tokens.
func (s *spread) write(prompt string, media []Media, v Vocabulary, plainSpecial bool, info EncoderInfo) ([]int32, *Error) {
	frames := make([][]frame, len(s.attachments))
	for i, a := range s.attachments {
		frames[i] = a.frames
	}
	parts, fault := placeMedia(prompt, media, frames, info)
	if fault != nil {
		return nil, fault
	}
	// Begin and end of the whole prompt belong to the text around the media.
	around := v.Encode("", tokenizer.EncodeOptions{AddSpecial: true})
	front, back := around, []int32(nil)
	if n := len(around); n > 0 && !v.AddBOS() {
		front, back = nil, around
	} else if n > 1 {
		front, back = around[:1], around[1:]
	}
	ids := append([]int32(nil), front...)
	for i, p := range parts {
		if p.item >= 0 {
			ids = s.add(ids, p.item, v, info.Width)
			continue
		}
		text := v.Encode(p.text, tokenizer.EncodeOptions{ParseSpecial: !plainSpecial})
		if i == 0 && len(front) > 0 && len(text) > 0 && text[0] == front[0] && !plainSpecial {
			text = text[1:] // BOS is in the text already
		}
		ids = append(ids, text...)
	}
	return append(ids, back...), nil
}

// rewrite puts the same media into another text, which has as many markers for them as the
// prompt had, and takes over what was encoded for prompt, the tokens that there were.
func (s *spread) rewrite(text string, r *Request, prompt []int32, v Vocabulary, plainSpecial bool, info EncoderInfo) ([]int32, *spread, *Error) {
	if have, want := marksIn(text, r.Media, info), marksIn(r.Prompt, r.Media, info); have != want {
		return nil, nil, Errorf(CodeRefused, "prompt", "a plugin made of the prompt one with %s, where it had %d", count(have, "marker for media", "markers for media"), want)
	}
	n := &spread{attachments: s.attachments}
	ids, fault := n.write(text, r.Media, v, plainSpecial, info)
	if fault != nil {
		return nil, nil, fault
	}
	for i := range n.spans {
		to := &n.spans[i]
		for _, from := range s.spans {
			if from.item == to.item && from.index == to.index {
				to.values = from.values
				copy(ids[to.from:to.end()], prompt[from.from:from.end()])
			}
		}
	}
	return ids, n, nil
}

// add puts an item behind what is there.
func (s *spread) add(ids []int32, item int, v Vocabulary, width int) []int32 {
	index := 0
	for _, p := range s.attachments[item].layout {
		if p.Text != "" {
			ids = append(ids, v.Encode(p.Text, tokenizer.EncodeOptions{ParseSpecial: true})...)
			continue
		}
		s.spans = append(s.spans, mediaSpan{from: len(ids), shift: s.shift, piece: p, item: item, index: index, width: width})
		s.shift += p.Tokens - p.steps()
		s.axes = s.axes || p.NX > 0
		for range p.Tokens {
			ids = append(ids, -1)
		}
		index++
	}
	return ids
}

// tokens is how many tokens of the prompt an item takes.
func (s *spread) tokens(item int, v Vocabulary) (n int) {
	for _, p := range s.attachments[item].layout {
		n += p.Tokens + len(v.Encode(p.Text, tokenizer.EncodeOptions{ParseSpecial: true}))
	}
	return n
}

// widest is the most rows that must run in one batch.
func (s *spread) widest() (n int) {
	for i := range s.spans {
		if s.spans[i].piece.Whole {
			n = max(n, s.spans[i].piece.Tokens)
		}
	}
	return n
}

// at finds the piece that holds a position, nil for text. next is the first piece behind.
func (s *spread) at(pos int) *mediaSpan {
	for i := range s.spans { // a prompt has few
		if p := &s.spans[i]; pos < p.end() {
			if pos >= p.from {
				return p
			}
			return nil
		}
	}
	return nil
}

// fill completes the row of a position.
func (s *spread) fill(row *engine.Row, pos int) {
	p := s.at(pos)
	if s.axes {
		row.Rotary, row.Turned = s.rotary(p, pos), true
	}
	if p == nil {
		return
	}
	at := pos - p.from
	row.Embed = p.values[at*p.width : (at+1)*p.width]
	if p.piece.Whole {
		row.Until = p.end()
	}
}

// rotary is where a position stands: time, line and column.
func (s *spread) rotary(p *mediaSpan, pos int) [3]int32 {
	if p == nil {
		shift := s.shift
		for i := len(s.spans) - 1; i >= 0 && pos < s.spans[i].from; i-- {
			shift = s.spans[i].shift
		}
		at := int32(pos - shift)
		return [3]int32{at, at, at}
	}
	begin, at := int32(p.from-p.shift), int32(pos-p.from)
	if p.piece.NX == 0 {
		return [3]int32{begin + at, begin + at, begin + at}
	}
	nx := int32(p.piece.NX)
	return [3]int32{begin, begin + at/nx, begin + at%nx}
}

// cut is the most of take rows from position fed on that end inside of no piece that must
// run at once.
func (s *spread) cut(fed, take int) int {
	if s == nil {
		return take
	}
	p := s.at(fed + take)
	if p == nil || !p.piece.Whole || fed+take == p.from {
		return take
	}
	return max(p.from-fed, 0)
}

// unit is how many rows must run at once from position fed on, 0 where one can run alone.
func (s *spread) unit(fed int) int {
	if s == nil {
		return 0
	}
	if p := s.at(fed); p != nil && p.piece.Whole {
		return p.end() - fed
	}
	return 0
}
