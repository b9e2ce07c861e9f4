package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// Metadata is what the tokenizer reads of a model file; each getter reports
// whether the key exists with a value of that type. The slices and strings that
// it returns must stay valid and unchanged as long as the Tokenizer is used.
type Metadata interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Bool(key string) (bool, bool)
	Strings(key string) ([]string, bool)
	Floats(key string) ([]float32, bool)
	Ints(key string) ([]int64, bool)
}

// encoder turns one stretch of ordinary text into tokens. afterSpecial tells
// that the text stands at the start or behind a special token.
type encoder interface {
	encode(dst []TokenID, text string, afterSpecial bool) []TokenID
}

// Tokenizer converts between text and tokens of one model. It is immutable
// after New: all methods may be called concurrently.
type Tokenizer struct {
	model   string
	pre     string
	quality string // warning about a guessed pre-tokenizer, or empty

	v       *vocab
	enc     encoder
	pieces  pieceStyle
	special specials
	flags   flags

	userTokens *matcher // user-defined tokens: searched in every text
	allTokens  *matcher // these and control and unknown tokens: on demand
}

// flags are the switches that the file or the kind of tokenizer sets.
type flags struct {
	addBOS      bool
	addEOS      bool
	endsWithSEP bool // SEP ends a text instead of EOS (BERT)
	spacePrefix bool // a space is put before the text
	mergeSpaces bool // runs of white space count as one space (unigram)
}

// EncodeOptions says how a text is to be read.
type EncodeOptions struct {
	// AddSpecial puts BOS in front and EOS behind where the model wants them.
	AddSpecial bool
	// ParseSpecial reads the text of control tokens as those tokens. Without
	// it such text is ordinary text and no control token is ever returned,
	// but for those that AddSpecial adds.
	ParseSpecial bool
}

// Models lists the values of tokenizer.ggml.model that New accepts.
func Models() []string {
	return []string{"bert", "gemma4", "gpt2", "llama", "t5"}
}

// New builds the tokenizer that m describes. An unknown tokenizer.ggml.model or
// tokenizer.ggml.pre is an error that names it and lists the known ones: a
// guess would tokenize almost right and quietly spoil the model's answers.
func New(m Metadata) (*Tokenizer, error) {
	model, ok := m.String("tokenizer.ggml.model")
	if !ok {
		return nil, fmt.Errorf("tokenizer: tokenizer.ggml.model: missing")
	}
	if !slices.Contains(Models(), model) {
		return nil, fmt.Errorf("tokenizer: tokenizer.ggml.model: unknown %q; known are %s", model, strings.Join(Models(), ", "))
	}
	texts, _ := m.Strings("tokenizer.ggml.tokens")
	kinds, _ := m.Ints("tokenizer.ggml.token_type")
	scores, _ := m.Floats("tokenizer.ggml.scores")
	v, err := newVocab(texts, kinds, scores)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{model: model, v: v}
	switch model {
	case "llama":
		t.initSPM(m)
	case "gpt2", "gemma4":
		err = t.initBPE(m)
	case "bert":
		t.initWPM(m)
	case "t5":
		err = t.initUGM(m)
	}
	if err != nil {
		return nil, err
	}
	t.userTokens = newMatcher(v, t.special.parsed, attrUserDefined)
	t.allTokens = newMatcher(v, t.special.parsed, attrUserDefined|attrControl|attrUnknown)
	return t, nil
}

func (t *Tokenizer) initSPM(m Metadata) {
	t.flags = flags{addBOS: true, spacePrefix: true}
	t.special = specials{bos: 1, eos: 2, unknown: 0, sep: none}
	t.readFlags(m)
	t.pieces = spacedPieces
	t.enc = newSPM(t.v, t.special.unknown, t.flags.spacePrefix)
}

func (t *Tokenizer) initBPE(m Metadata) error {
	t.special = specials{bos: 11, eos: 11, unknown: none, sep: none}
	t.pre, _ = m.String("tokenizer.ggml.pre")
	if t.model == "gemma4" {
		t.pre = "gemma4"
		t.special.bos, t.special.eos = none, none
	}
	if t.pre == "" {
		t.pre = "default"
	}
	pre, err := findPreTokenizer(t.pre)
	if err != nil {
		return err
	}
	if t.pre == "default" {
		t.quality = "the model file does not name its pre-tokenizer (tokenizer.ggml.pre); text is split by a general rule and answers may be worse"
	}
	if pre.noBOS {
		t.special.bos = none
	}
	merges, ok := m.Strings("tokenizer.ggml.merges")
	if !ok {
		return fmt.Errorf("tokenizer: tokenizer.ggml.merges: missing")
	}
	t.flags.addBOS = pre.addBOS
	t.readFlags(m)
	t.flags.addBOS = t.flags.addBOS || pre.alwaysBOS
	t.pieces = bytePieces
	if pre.rawUTF8 {
		t.pieces = spacedPieces
	}
	t.enc = newBPE(t.v, pre, merges)
	return nil
}

func (t *Tokenizer) initWPM(m Metadata) {
	t.flags = flags{addBOS: true, endsWithSEP: true}
	t.special = specials{bos: 101, eos: none, unknown: 100, sep: 102}
	t.readFlags(m)
	t.flags.addBOS = true // CLS, which the model cannot do without
	lowercase := true
	if b, ok := m.Bool("tokenizer.ggml.normalizer.lowercase"); ok {
		lowercase = b
	}
	stripAccents := lowercase
	if b, ok := m.Bool("tokenizer.ggml.normalizer.strip_accents"); ok {
		stripAccents = b
	}
	t.enc = newWPM(t.v, t.special.unknown, lowercase, stripAccents)
}

func (t *Tokenizer) initUGM(m Metadata) error {
	t.flags = flags{addEOS: true}
	t.special = specials{bos: none, eos: 1, unknown: 2, sep: none}
	t.readFlags(m)
	raw, _ := m.Ints("tokenizer.ggml.precompiled_charsmap")
	charsmap, err := newCharsmap(raw)
	if err != nil {
		return err
	}
	t.enc, err = newUGM(t.v, t.flags, t.special.unknown, charsmap)
	return err
}

// readFlags overrides the defaults of the tokenizer's kind by what the file says.
func (t *Tokenizer) readFlags(m Metadata) {
	for key, f := range map[string]*bool{
		"tokenizer.ggml.add_bos_token":            &t.flags.addBOS,
		"tokenizer.ggml.add_eos_token":            &t.flags.addEOS,
		"tokenizer.ggml.add_space_prefix":         &t.flags.spacePrefix,
		"tokenizer.ggml.remove_extra_whitespaces": &t.flags.mergeSpaces,
	} {
		if b, ok := m.Bool(key); ok {
			*f = b
		}
	}
	t.special.read(m, t.v)
	setStripping(m, t.v)
}

// Encode returns the tokens of text. BOS comes once: where AddSpecial asks for
// it and the text, read with ParseSpecial, begins with it, none is added.
func (t *Tokenizer) Encode(text string, o EncodeOptions) []TokenID {
	ids := make([]TokenID, 0, 8+len(text)/3)
	if o.AddSpecial && t.flags.addBOS && t.special.bos != none {
		ids = append(ids, t.special.bos)
	}
	first := len(ids)
	ids = t.appendText(ids, text, o.ParseSpecial)
	if o.ParseSpecial && first == 1 && len(ids) > 1 && ids[1] == ids[0] {
		ids = slices.Delete(ids, 0, 1)
	}
	if o.AddSpecial {
		ids = t.appendEnd(ids)
	}
	return ids
}

// appendText appends the tokens of text without any that frame it.
func (t *Tokenizer) appendText(ids []TokenID, text string, parseSpecial bool) []TokenID {
	m := t.userTokens
	if parseSpecial {
		m = t.allTokens
	}
	at, afterSpecial := 0, true
	for _, f := range m.find(text) {
		if f.start > at {
			ids = t.enc.encode(ids, text[at:f.start], afterSpecial)
		}
		ids = append(ids, f.id)
		at, afterSpecial = f.end, true
	}
	if at < len(text) {
		ids = t.enc.encode(ids, text[at:], afterSpecial)
	}
	return ids
}

// appendEnd appends what the model wants behind a text, once.
func (t *Tokenizer) appendEnd(ids []TokenID) []TokenID {
	if t.flags.endsWithSEP && t.special.sep != none {
		return append(ids, t.special.sep)
	}
	if t.flags.addEOS && t.special.eos != none {
		return append(ids, t.special.eos)
	}
	return ids
}

// Model returns tokenizer.ggml.model.
func (t *Tokenizer) Model() string { return t.model }

// Family returns which kind of tokenizer that is: "bpe", "spm" (SentencePiece with merges),
// "unigram" or "wpm" (WordPiece).
func (t *Tokenizer) Family() string {
	switch t.model {
	case "llama":
		return "spm"
	case "bert":
		return "wpm"
	case "t5":
		return "unigram"
	}
	return "bpe"
}

// Pre returns the name of the pre-tokenizer of a BPE model, else "".
func (t *Tokenizer) Pre() string { return t.pre }

// QualityWarning returns a sentence for the user when the file leaves open how
// text is to be split, so that answers may suffer, else "".
func (t *Tokenizer) QualityWarning() string { return t.quality }

// VocabSize returns the number of tokens.
func (t *Tokenizer) VocabSize() int { return len(t.v.texts) }

// Text returns the text of a token as the file has it, "" for an id outside the
// vocabulary.
func (t *Tokenizer) Text(id TokenID) string {
	if !t.v.isToken(id) {
		return ""
	}
	return t.v.texts[id]
}

// Kind returns what a token stands for, Undefined for an id outside the
// vocabulary. Tokens known to end a generation are Control whatever the file
// says of them.
func (t *Tokenizer) Kind(id TokenID) Kind {
	if !t.v.isToken(id) {
		return Undefined
	}
	return t.v.kind(id)
}

// BOS returns the token that begins a text, if the model has one.
func (t *Tokenizer) BOS() (TokenID, bool) { return t.special.bos, t.special.bos != none }

// EOS returns the token that ends a text, if the model has one.
func (t *Tokenizer) EOS() (TokenID, bool) { return t.special.eos, t.special.eos != none }

// AddBOS tells whether the model wants BOS in front of a prompt.
func (t *Tokenizer) AddBOS() bool { return t.flags.addBOS && t.special.bos != none }

// IsEOG tells whether a token ends a generation.
func (t *Tokenizer) IsEOG(id TokenID) bool {
	_, ok := slices.BinarySearch(t.special.eog, id)
	return ok
}

// EOG returns the tokens that end a generation, in ascending order. The slice
// is the caller's.
func (t *Tokenizer) EOG() []TokenID { return slices.Clone(t.special.eog) }

// Suppressed returns the tokens that must never be generated
// (tokenizer.ggml.suppress_tokens). The slice is the caller's.
func (t *Tokenizer) Suppressed() []TokenID { return slices.Clone(t.special.suppressed) }
