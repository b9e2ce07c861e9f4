package tokenizer

import (
	"slices"
	"strings"
)

// specials are the tokens with a part of their own.
type specials struct {
	bos, eos, unknown, sep TokenID // none where the model has none

	eog        []TokenID // ends of generation, ascending
	suppressed []TokenID // never to be generated

	// parsed holds, for tokens whose attributes were corrected for rendering
	// only, the attributes that the search in prompts goes by.
	parsed map[TokenID]attr
}

// endTexts are the texts by which tokens that end a generation are known: files
// name one EOS token, but models have several.
var endTexts = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
	"<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
	"<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
	"<｜end▁of▁sentence｜>", "[e~[",
}

// fillTexts are, by key of the file, the texts of the fill-in-the-middle tokens;
// models without the key are searched for them.
var fillTexts = []struct {
	keys  []string
	texts []string
	ends  bool // generating it ends the text
}{
	{[]string{"fim_pre_token_id", "prefix_token_id"}, []string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"}, false},
	{[]string{"fim_suf_token_id", "suffix_token_id"}, []string{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"}, false},
	{[]string{"fim_mid_token_id", "middle_token_id"}, []string{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"}, false},
	{[]string{"fim_pad_token_id"}, []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}, true},
	{[]string{"fim_rep_token_id"}, []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}, true},
	{[]string{"fim_sep_token_id"}, []string{"<|file_sep|>"}, true},
}

// shownTexts are tokens of the harmony format that clients must see although
// the file calls them control tokens.
var shownTexts = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}

// read takes the special tokens from the file over the defaults already set,
// finds the ends of generation, and corrects token attributes.
func (s *specials) read(m Metadata, v *vocab) {
	for key, id := range map[string]*TokenID{
		"bos_token_id": &s.bos, "eos_token_id": &s.eos, "unknown_token_id": &s.unknown,
		"seperator_token_id": &s.sep, // so spelled in the format
	} {
		readID(m, v, key, id)
	}
	s.readSuppressed(m, v)
	var ends []TokenID
	for _, key := range []string{"eot_token_id", "eom_token_id"} {
		id := none
		if readID(m, v, key, &id); id != none {
			ends = append(ends, id)
		}
	}
	for _, f := range fillTexts {
		id := none
		for _, key := range f.keys {
			readID(m, v, key, &id)
		}
		for i := 0; id == none && i < len(f.texts); i++ {
			if id = v.token(f.texts[i]); id != none {
				v.attrs[id] |= attrControl
			}
		}
		if f.ends && id != none {
			ends = append(ends, id)
		}
	}
	if s.eos != none {
		ends = append(ends, s.eos)
	}
	s.findEnds(v, ends)
}

// findEnds fills s.eog from the ids given by the file and the known texts.
func (s *specials) findEnds(v *vocab, ends []TokenID) {
	for i, a := range v.attrs {
		if a&attrControl != 0 && strings.Contains(v.texts[i], "unused") {
			v.attrs[i] |= attrUnused
		}
	}
	for _, text := range endTexts {
		if id := v.token(text); id != none {
			v.attrs[id] |= attrControl
			ends = append(ends, id)
		}
	}
	slices.Sort(ends)
	s.eog = slices.Compact(ends)

	s.parsed = map[TokenID]attr{}
	for _, text := range shownTexts {
		s.show(v, v.token(text))
	}
	has := func(text string) bool { return v.token(text) != none && slices.Contains(s.eog, v.token(text)) }
	// In harmony and its kin <|end|> ends a message, not the answer.
	if end := v.token("<|end|>"); has("<|return|>") && has("<|call|>") || has("<|flush|>") && (has("<|call|>") || has("<|calls|>")) {
		s.drop(end)
		s.show(v, end)
	}
	// In gemma 4 and PLaMo </s> is a piece of HTML.
	if id := v.token("</s>"); id != none && (has("<|tool_response>") || has("<|plamo:eos|>")) && has("</s>") {
		s.drop(id)
		v.attrs[id] = attrNormal
	}
}

// show makes a token render as text. The search in prompts still treats it as
// the file says: a prompt read as plain text must not produce it.
func (s *specials) show(v *vocab, id TokenID) {
	if id == none {
		return
	}
	s.parsed[id] = v.attrs[id]
	v.attrs[id] = attrUserDefined
}

func (s *specials) drop(id TokenID) {
	s.eog = slices.DeleteFunc(s.eog, func(e TokenID) bool { return e == id })
}

func (s *specials) readSuppressed(m Metadata, v *vocab) {
	ids, _ := m.Ints("tokenizer.ggml.suppress_tokens")
	for _, id := range ids {
		if id >= 0 && id < int64(len(v.texts)) {
			s.suppressed = append(s.suppressed, TokenID(id))
		}
	}
}

// readID sets *id from the file; an id outside the vocabulary, from the file or
// the default, counts as absent.
func readID(m Metadata, v *vocab, key string, id *TokenID) {
	if *id != none && !v.isToken(*id) {
		*id = none
	}
	if n, ok := m.Uint("tokenizer.ggml." + key); ok && n < uint64(len(v.texts)) {
		*id = TokenID(n)
	}
}

// setStripping marks the tokens that take white space beside them along. Files
// do not carry this property, so it goes by the names of the models.
func setStripping(m Metadata, v *vocab) {
	name, _ := m.String("general.name")
	name = strings.ToLower(name)
	arch, _ := m.String("general.architecture")
	pre, _ := m.String("tokenizer.ggml.pre")
	set := func(text string, a attr, on bool) {
		if id := v.token(text); id == none {
			return
		} else if on {
			v.attrs[id] |= a
		} else {
			v.attrs[id] &^= a
		}
	}
	switch {
	case containsAny(pre, "jina-v2-de", "jina-v2-es", "jina-v2-code"), containsAny(arch, "nomic-bert-moe", "jina-bert-v3"):
		set("<mask>", attrLStrip, true)
	case containsAny(name, "phi-3", "phi3"):
		for i, a := range v.attrs {
			if a&(attrControl|attrUserDefined|attrUnknown) != 0 {
				v.attrs[i] |= attrRStrip
			}
		}
		set("</s>", attrRStrip, true)
		for _, text := range []string{"<unk>", "<s>", "<|endoftext|>"} {
			set(text, attrRStrip, false)
		}
	case strings.Contains(name, "modern-bert"):
		set("[MASK]", attrLStrip, true)
	}
}

func containsAny(s string, subs ...string) bool {
	return slices.ContainsFunc(subs, func(sub string) bool { return strings.Contains(s, sub) })
}
