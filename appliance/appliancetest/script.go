package appliancetest

// gap is how far the token of a script stands above all others: at any temperature
// up to 4 and with any bias or penalty nothing else is drawn.
const gap = 300

// Script is what a scripted model says.
type Script struct {
	// Pieces are the tokens, one for each string; they may hold any bytes. After
	// them comes the end token, or the pieces again when Endless is set.
	Pieces  []string
	Endless bool
	// IDs, when not nil, are used instead of Pieces: tokens of the Vocabulary.
	IDs []int32
	// For, when not nil, gives the text for a prompt instead of Pieces, one token
	// for each byte. It must give the same for the same prompt.
	For func(prompt string) string
}

// NewScripted returns a model that emits a script, whatever the prompt, at any
// sampling values that leave the most likely token alone.
func NewScripted(script Script, o Options) *Scripted {
	m := newModel("scripted", o)
	ids := script.IDs
	byPiece := map[string]int32{}
	id := func(piece string) int32 {
		if _, ok := byPiece[piece]; !ok {
			byPiece[piece] = m.vocab.Add(piece)
		}
		return byPiece[piece]
	}
	if ids == nil {
		for _, p := range script.Pieces {
			ids = append(ids, id(p))
		}
	}
	m.logits = func(seq []int32, prompt int, row []float32) {
		said := ids
		if script.For != nil {
			said = bytes(script.For(m.render(seq[:prompt])))
		}
		next, n := EOS, len(seq)-prompt
		switch {
		case n < len(said):
			next = said[n]
		case script.Endless && len(said) > 0:
			next = said[n%len(said)]
		}
		for i := range row {
			row[i] = -gap - float32(i%7)
		}
		row[next] = 0
	}
	return m.finish()
}

// render returns the text of tokens.
func (m *Scripted) render(ids []int32) string {
	var b []byte
	for _, id := range ids {
		b = m.vocab.AppendPiece(b, id, false)
	}
	return string(b)
}

// bytes writes text as byte tokens, for the vocabulary is fixed once the model is in
// use.
func bytes(text string) (ids []int32) {
	for i := range len(text) {
		ids = append(ids, int32(text[i]))
	}
	return ids
}

// NewHashed returns a model whose logits are noise that depends on every token of
// the sequence and on their order: any token that is missing, doubled, misplaced or
// of another request changes all that follows. Only printable bytes and, rarely, the
// end token are likely. The same sequence always gives the same logits.
func NewHashed(o Options) *Scripted {
	m := newModel("hashed", o)
	m.logits = func(seq []int32, _ int, row []float32) {
		h := uint64(14695981039346656037) // FNV-1a over the tokens
		for _, t := range seq {
			h = (h ^ uint64(uint32(t))) * 1099511628211
		}
		for i := range row {
			v := float32(mix(h+uint64(i)*0x9E3779B97F4A7C15)>>40) / (1 << 24) // [0, 1)
			switch {
			case i >= ' ' && i <= '~':
				row[i] = 8 * v
			case int32(i) == EOS:
				row[i] = 8*v - 3
			default:
				row[i] = -20 - v
			}
		}
	}
	return m.finish()
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
