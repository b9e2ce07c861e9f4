package appliance

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ganglion/gpu/tokenizer"
)

var errNotUTF8 = Errorf(CodeInvalidUTF8, "prompt", "the prompt is not valid UTF-8")

// tokenize returns the prompt's tokens exactly as they go to the model: BOS where
// the model wants it, once, and the tokens of exactly the prompt's text. A prompt
// given as ids is taken as it is. An empty prompt is BOS alone.
func tokenize(r *Request, v Vocabulary, plainSpecial bool) ([]int32, *Error) {
	var ids []int32
	if r.PromptTokens != nil {
		for i, id := range r.PromptTokens {
			if id < 0 || int(id) >= v.VocabSize() {
				return nil, Errorf(CodeInvalid, "prompt", "prompt[%d] is %d; the model's token ids are 0 to %d", i, id, v.VocabSize()-1)
			}
		}
		ids = slices.Clone(r.PromptTokens)
	} else {
		if !utf8.ValidString(r.Prompt) {
			return nil, errNotUTF8
		}
		ids = v.Encode(r.Prompt, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: !plainSpecial})
	}
	if len(ids) == 0 {
		bos, ok := v.BOS()
		if !ok {
			return nil, Errorf(CodeEmptyPrompt, "prompt", "the prompt is empty and the model has no token to begin with")
		}
		ids = []int32{bos}
	}
	return ids, nil
}

// warnings are remarks about a request that is answered all the same.
func warnings(r *Request) []string {
	if r.PromptTokens == nil && strings.HasSuffix(r.Prompt, " ") {
		return []string{"the prompt ends in a space; models continue better from the end of a word"}
	}
	return nil
}
