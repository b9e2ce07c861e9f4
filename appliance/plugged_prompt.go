package appliance

import (
	"slices"
	"strings"

	"ganglion/gpu/tokenizer"
)

// promptText is the text of a prompt as plugins see it. Where the prompt came as tokens,
// it is what they stand for, so that no plugin that looks at texts is passed by.
type promptText struct {
	text  string
	vocab Vocabulary
	plain bool // texts name no control tokens
	begin bool // what the tokenizer adds to a text belongs to it

	// Of a prompt with media: where they stand is not in the tokens that plugins see.
	media  func(text string) ([]int32, *spread, *Error) // writes them into another text; nil: there are none
	ids    []int32                                      // tokens of the latest text that a plugin made
	spread *spread                                      // and its media; nil: none did
	forced bool                                         // a plugin gave tokens
}

func newPromptText(r *Request, tokens []int32, v Vocabulary, plain bool) *promptText {
	p := &promptText{text: r.Prompt, vocab: v, plain: plain, begin: true}
	if r.PromptTokens != nil {
		p.text = p.read(tokens)
	}
	return p
}

// read makes a text of tokens, from which tokens makes them again.
func (p *promptText) read(tokens []int32) string {
	bos, ok := p.vocab.BOS()
	if p.begin = ok && len(tokens) > 0 && tokens[0] == bos; p.begin {
		tokens = tokens[1:]
	}
	var b []byte
	for _, id := range tokens {
		b = p.vocab.AppendPiece(b, id, !p.plain)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// tokens makes tokens of a text that a plugin gave.
func (p *promptText) tokens(text string) ([]int32, error) {
	if p.media != nil {
		ids, s, fault := p.media(text)
		if fault != nil {
			return nil, fault
		}
		p.ids, p.spread = ids, s
		return textual(ids), nil
	}
	ids := p.vocab.Encode(text, tokenizer.EncodeOptions{AddSpecial: p.begin, ParseSpecial: !p.plain})
	if len(ids) > 0 {
		return ids, nil
	}
	if bos, ok := p.vocab.BOS(); ok {
		return []int32{bos}, nil
	}
	return nil, Errorf(CodeEmptyPrompt, "prompt", "it is empty and the model has no token to begin with")
}

// given makes a text of tokens that a plugin gave.
func (p *promptText) given(tokens []int32) string {
	p.forced = true
	return p.read(tokens)
}

// textual are tokens with token 0 in the place of each row of media: plugins know the
// model's tokens alone.
func textual(ids []int32) []int32 {
	ids = slices.Clone(ids)
	for i, id := range ids {
		ids[i] = max(id, 0)
	}
	return ids
}
