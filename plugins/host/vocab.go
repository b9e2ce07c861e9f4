package host

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ganglion/plugins/abi"
)

// Kinds of vocab_mask.
const (
	maskRegexp = iota
	maskPrefix
	maskContains
	maskScriptAny
	maskScriptAll
	maskBroken
	maskControl
	maskEOG

	maskKinds
)

// Fuel of text work, by the byte: a tokenizer takes tens of nanoseconds for one.
const (
	encodeFuel   = 32
	encodeMost   = 256 << 10     // bytes
	tokenFuel    = 8             // for each token that is looked at
	scriptFuel   = 2             // for each byte of the vocabulary, where its characters are looked up
	rangeFuel    = 256           // for each range of characters of a script
	scriptMost   = 32            // names
	regexpLimit  = 1 << 16       // instructions
	compileFuel  = 512           // for each instruction of an expression
	masksKept    = 32 << 20      // bytes of masks that are kept
	masksShare   = masksKept / 4 // of one plugin
	vocabsKept   = 8             // vocabularies with their lists and tries
	noTokenInPre = 0xFFFFFFFF
)

func (i *Instance) tokBytes(id, out, capacity uint32) int32 {
	v := i.services.Vocab
	if v == nil {
		return abi.NotPermitted
	}
	if id >= i.vocab {
		return abi.Invalid
	}
	if id >= uint32(v.Size()) { // the model has it, the tokenizer does not
		return i.give(nil, out, capacity)
	}
	return i.give(v.Bytes(int32(id)), out, capacity)
}

func (i *Instance) tokEncode(at, n, flags, out, capacity uint32) int32 {
	v := i.services.Vocab
	switch {
	case v == nil:
		return abi.NotPermitted
	case n > encodeMost:
		return abi.OverQuota
	case flags > 3:
		return abi.Invalid
	}
	b, ok := i.input(at, n)
	if !ok {
		return abi.Invalid
	}
	i.burn(encodeFuel * int64(n))
	ids := v.Encode(b, flags&1 != 0, flags&2 != 0)
	if len(ids) > int(capacity) {
		return abi.TooSmall(len(ids))
	}
	to, ok := i.bytes(out, uint32(4*len(ids)))
	if !ok {
		return abi.Invalid
	}
	for k, id := range ids {
		binary.LittleEndian.PutUint32(to[4*k:], uint32(id))
	}
	return int32(len(ids))
}

func (i *Instance) tokDecode(at, n, out, capacity uint32) int32 {
	v := i.services.Vocab
	switch {
	case v == nil:
		return abi.NotPermitted
	case n > encodeMost/4:
		return abi.OverQuota
	}
	b, ok := i.input(at, 4*n)
	if !ok {
		return abi.Invalid
	}
	i.burn(encodeFuel * int64(n))
	ids := make([]int32, 0, n)
	for k := range int(n) {
		id := binary.LittleEndian.Uint32(b[4*k:])
		if id >= i.vocab {
			return abi.Invalid
		}
		if id < uint32(v.Size()) { // the others stand for nothing
			ids = append(ids, int32(id))
		}
	}
	return i.give(v.Decode(ids), out, capacity)
}

func (i *Instance) tokSpecial(role uint32) int32 {
	v := i.services.Vocab
	if v == nil {
		return abi.NotPermitted
	}
	if role > 4 {
		return abi.Invalid
	}
	id, ok := v.Special(int(role))
	if !ok {
		return abi.NotFound
	}
	return id
}

func (i *Instance) tokIsEOG(id uint32) int32 {
	v := i.services.Vocab
	switch {
	case v == nil:
		return abi.NotPermitted
	case id >= i.vocab:
		return abi.Invalid
	case id < uint32(v.Size()) && v.EOG(int32(id)):
		return 1
	}
	return 0
}

func (i *Instance) vocabMask(kind, at, n, out uint32) int32 {
	v := i.services.Vocab
	switch {
	case v == nil || !i.can(abi.CapVocab) || i.hook != abi.HookOpen && i.hook != abi.HookPrompt:
		return abi.NotPermitted
	case kind >= maskKinds:
		return abi.Invalid
	case n > maxMaskArgument:
		return abi.OverQuota
	}
	b, ok := i.input(at, n)
	if !ok {
		return abi.Invalid
	}
	to, ok := i.bytes(out, (i.vocab+31)/32*4)
	if !ok {
		return abi.Invalid
	}
	argument := string(b)
	// The price is the same whether the result is at hand or not: fuel is part of what a
	// replay repeats.
	i.burn(tokenFuel * int64(v.Size()))
	match, r := i.matcher(kind, argument, v)
	if match == nil {
		return r
	}
	mask := i.p.r.vocab.mask(maskKey{v.Key(), kind, argument}, i.p.hash, func() []byte {
		ask := match()
		m := make([]byte, (v.Size()+31)/32*4)
		for id := range int32(v.Size()) {
			if ask(id) {
				m[id/8] |= 1 << (id % 8) // the words are little-endian
			}
		}
		return m
	})
	// The mask is as long as the frame's, whatever the tokenizer has: tokens that only the
	// model has are in none, and those that it lacks are left out.
	clear(to[copy(to, mask):])
	if rest := i.vocab % 32; rest != 0 {
		last := to[len(to)-4:]
		binary.LittleEndian.PutUint32(last, binary.LittleEndian.Uint32(last)&(1<<rest-1))
	}
	count := 0
	for k := 0; k+4 <= len(to); k += 4 {
		count += bits.OnesCount32(binary.LittleEndian.Uint32(to[k:]))
	}
	return int32(count)
}

// question is what a mask asks of each token. Making it may take a while; it is made where
// the mask is not at hand.
type question func() func(id int32) bool

// matcher charges for a mask and makes its question; nil and a result for the guest where
// it cannot be asked.
func (i *Instance) matcher(kind uint32, argument string, v Vocabulary) (question, int32) {
	text := []byte(argument)
	ask := func(f func(id int32) bool) (question, int32) { return func() func(int32) bool { return f }, 0 }
	switch kind {
	case maskRegexp:
		return i.regexpMatcher(argument, v)
	case maskPrefix:
		return ask(func(id int32) bool { b := v.Bytes(id); return len(b) > 0 && bytes.HasPrefix(b, text) })
	case maskContains:
		// Looking for a needle takes a comparison for each byte at worst, of few bytes:
		// tokens are short.
		i.burn(scriptFuel * int64(i.p.r.vocab.facts(v).bytes))
		return ask(func(id int32) bool { b := v.Bytes(id); return len(b) > 0 && bytes.Contains(b, text) })
	case maskScriptAny, maskScriptAll:
		return i.scriptMatcher(argument, v, kind == maskScriptAll)
	case maskBroken:
		return ask(func(id int32) bool { return !utf8.Valid(v.Bytes(id)) })
	case maskControl:
		return ask(v.Control)
	}
	return ask(v.EOG)
}

// scriptMatcher asks for characters of scripts: for any of them, or that all letters are.
func (i *Instance) scriptMatcher(argument string, v Vocabulary, all bool) (question, int32) {
	var scripts []*unicode.RangeTable
	ranges, n := 0, 0
	for name := range strings.SplitSeq(argument, ",") {
		t, ok := unicode.Scripts[strings.TrimSpace(name)]
		if n++; n > scriptMost {
			return nil, abi.OverQuota
		}
		if !ok {
			return nil, abi.NotFound
		}
		if !slices.Contains(scripts, t) {
			scripts = append(scripts, t)
			ranges += len(t.R16) + len(t.R32)
		}
	}
	i.burn(rangeFuel*int64(ranges) + scriptFuel*int64(i.p.r.vocab.facts(v).bytes))
	return func() func(id int32) bool {
		if !all {
			set := newRuneSet(scripts)
			return func(id int32) bool {
				return anyRune(v.Bytes(id), set.has)
			}
		}
		set := newRuneSet(append(scripts, unicode.Common, unicode.Inherited))
		return func(id int32) bool {
			b := v.Bytes(id)
			return len(b) > 0 && !anyRune(b, func(r rune) bool { return !set.has(r) && unicode.IsLetter(r) })
		}
	}, 0
}

// anyRune tells whether a text has a character of a kind. What is not UTF-8 counts as
// U+FFFD.
func anyRune(b []byte, is func(r rune) bool) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if is(r) {
			return true
		}
		b = b[n:]
	}
	return false
}

// runeSet is the characters of some scripts: looking one up takes the same however many
// scripts there are.
type runeSet struct {
	ascii [utf8.RuneSelf]bool
	ends  []rune // characters at which the set begins, ends, begins again…
}

func newRuneSet(scripts []*unicode.RangeTable) *runeSet {
	type span struct{ from, to rune }
	var spans []span
	add := func(low, high, stride rune) {
		if stride == 1 {
			spans = append(spans, span{low, high + 1})
			return
		}
		for r := low; r <= high; r += stride {
			spans = append(spans, span{r, r + 1})
		}
	}
	for _, t := range scripts {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	s := &runeSet{}
	for _, n := range spans {
		last := len(s.ends) - 1
		if last >= 0 && n.from <= s.ends[last] {
			s.ends[last] = max(s.ends[last], n.to)
			continue
		}
		s.ends = append(s.ends, n.from, n.to)
	}
	for r := range rune(len(s.ascii)) {
		s.ascii[r] = s.seek(r)
	}
	return s
}

func (s *runeSet) has(r rune) bool {
	if r < utf8.RuneSelf {
		return s.ascii[r]
	}
	return s.seek(r)
}

func (s *runeSet) seek(r rune) bool {
	at, found := slices.BinarySearch(s.ends, r)
	return (at%2 == 1) != found
}

// regexpMatcher bounds an expression's size and its work over the vocabulary before it is
// compiled.
func (i *Instance) regexpMatcher(expr string, v Vocabulary) (question, int32) {
	i.burn(compileFuel * int64(len(expr))) // of reading it
	size, err := abi.ProgramSize(expr)
	if err != nil {
		return nil, abi.Invalid
	}
	facts := i.p.r.vocab.facts(v)
	work := int64(size) * int64(facts.bytes+v.Size())
	if size > regexpLimit || work > maxMaskWork {
		return nil, abi.OverQuota
	}
	i.burn(work + compileFuel*int64(size))
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, abi.Invalid
	}
	return func() func(id int32) bool {
		return func(id int32) bool { b := v.Bytes(id); return len(b) > 0 && re.Match(b) }
	}, 0
}

func (i *Instance) vocabData(kind uint32) ([]byte, int32) {
	v := i.services.Vocab
	switch {
	case v == nil || !i.can(abi.CapVocab) || i.hook != abi.HookOpen && i.hook != abi.HookPrompt:
		return nil, abi.NotPermitted
	case int(kind) >= len(vocabFacts{}.loads):
		return nil, abi.Invalid
	}
	i.burn(tokenFuel * int64(v.Size()))
	return i.p.r.vocab.load(v, kind), 0
}

func (i *Instance) vocabBytes(kind uint32) int32 {
	b, r := i.vocabData(kind)
	if r != 0 {
		return r
	}
	return int32(len(b))
}

func (i *Instance) vocabLoad(kind, at uint32) int32 {
	b, r := i.vocabData(kind)
	if r != 0 {
		return r
	}
	return i.give(b, at, uint32(len(b)))
}

// vocabList is u32 n, u32 offsets[n+1], bytes.
func vocabList(v Vocabulary) []byte {
	n := v.Size()
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, 16*n), uint32(n))
	at := uint32(0)
	for id := range int32(n) {
		out = binary.LittleEndian.AppendUint32(out, at)
		at += uint32(len(v.Bytes(id)))
	}
	out = binary.LittleEndian.AppendUint32(out, at)
	for id := range int32(n) {
		out = append(out, v.Bytes(id)...)
	}
	return out
}
