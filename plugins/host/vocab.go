package host

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
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
	encodeMost   = 256 << 10 // bytes
	tokenFuel    = 2         // for each token that is looked at
	regexpShare  = 4         // instructions of an expression times bytes, for one fuel
	regexpLimit  = 1 << 16   // instructions
	vocabKept    = 64 << 20  // bytes of masks and tries that are kept
	noTokenInPre = 0xFFFFFFFF
)

func (i *Instance) tokBytes(id, out, capacity uint32) int32 {
	v := i.services.Vocab
	if v == nil {
		return abi.NotPermitted
	}
	if id >= uint32(v.Size()) {
		return abi.Invalid
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
	ids := make([]int32, n)
	for k := range ids {
		id := binary.LittleEndian.Uint32(b[4*k:])
		if id >= uint32(v.Size()) {
			return abi.Invalid
		}
		ids[k] = int32(id)
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
	case id >= uint32(v.Size()):
		return abi.Invalid
	case v.EOG(int32(id)):
		return 1
	}
	return 0
}

// vocabCache keeps what was computed about vocabularies: it is the same for every
// request.
type vocabCache struct {
	mu    sync.Mutex
	made  map[vocabKey][]byte
	bytes int
}

type vocabKey struct {
	vocab string
	what  string // "mask" or "load"
	kind  uint32
	arg   string
}

// get finds a result or makes it. Two that ask at once may both make it.
func (c *vocabCache) get(k vocabKey, make_ func() []byte) []byte {
	c.mu.Lock()
	b, ok := c.made[k]
	c.mu.Unlock()
	if ok {
		return b
	}
	b = make_()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || c.bytes+len(b) > vocabKept {
		c.made, c.bytes = map[vocabKey][]byte{}, 0
	}
	c.made[k] = b
	c.bytes += len(b)
	return b
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
	to, ok := i.bytes(out, uint32((v.Size()+31)/32*4))
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
	mask := i.p.r.vocab.get(vocabKey{v.Key(), "mask", kind, argument}, func() []byte {
		m := make([]byte, (v.Size()+31)/32*4)
		for id := range int32(v.Size()) {
			if match(id) {
				m[id/8] |= 1 << (id % 8) // the words are little-endian
			}
		}
		return m
	})
	count := 0
	for k := 0; k+4 <= len(mask); k += 4 {
		count += bits.OnesCount32(binary.LittleEndian.Uint32(mask[k:]))
	}
	copy(to, mask)
	return int32(count)
}

// matcher is the question that a mask answers of each token; nil and a result for the
// guest where it cannot be asked.
func (i *Instance) matcher(kind uint32, argument string, v Vocabulary) (func(id int32) bool, int32) {
	switch kind {
	case maskRegexp:
		return i.regexpMatcher(argument, v)
	case maskPrefix:
		return func(id int32) bool {
			b := v.Bytes(id)
			return len(b) > 0 && bytes.HasPrefix(b, []byte(argument))
		}, 0
	case maskContains:
		return func(id int32) bool { b := v.Bytes(id); return len(b) > 0 && bytes.Contains(b, []byte(argument)) }, 0
	case maskScriptAny, maskScriptAll:
		var scripts []*unicode.RangeTable
		for name := range strings.SplitSeq(argument, ",") {
			t, ok := unicode.Scripts[strings.TrimSpace(name)]
			if !ok {
				return nil, abi.NotFound
			}
			scripts = append(scripts, t)
		}
		if kind == maskScriptAny {
			return func(id int32) bool {
				return strings.IndexFunc(string(v.Bytes(id)), func(r rune) bool { return unicode.In(r, scripts...) }) >= 0
			}, 0
		}
		scripts = append(scripts, unicode.Common, unicode.Inherited)
		return func(id int32) bool {
			b := v.Bytes(id)
			return len(b) > 0 && strings.IndexFunc(string(b), func(r rune) bool { return unicode.IsLetter(r) && !unicode.In(r, scripts...) }) < 0
		}, 0
	case maskBroken:
		return func(id int32) bool { return !utf8.Valid(v.Bytes(id)) }, 0
	case maskControl:
		return v.Control, 0
	}
	return v.EOG, 0
}

// regexpMatcher bounds an expression's work over the vocabulary before it is done.
func (i *Instance) regexpMatcher(expr string, v Vocabulary) (func(id int32) bool, int32) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, abi.Invalid
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, abi.Invalid
	}
	size := 0
	for id := range int32(v.Size()) {
		size += 1 + len(v.Bytes(id))
	}
	work := int64(len(prog.Inst)) * int64(size)
	if len(prog.Inst) > regexpLimit || work > maxMaskWork {
		return nil, abi.OverQuota
	}
	i.burn(work / regexpShare)
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, abi.Invalid
	}
	return func(id int32) bool { b := v.Bytes(id); return len(b) > 0 && re.Match(b) }, 0
}

func (i *Instance) vocabData(kind uint32) ([]byte, int32) {
	v := i.services.Vocab
	switch {
	case v == nil || !i.can(abi.CapVocab):
		return nil, abi.NotPermitted
	case kind > 1:
		return nil, abi.Invalid
	}
	i.burn(tokenFuel * int64(v.Size()))
	return i.p.r.vocab.get(vocabKey{v.Key(), "load", kind, ""}, func() []byte {
		if kind == 0 {
			return vocabList(v)
		}
		return vocabTrie(v)
	}), 0
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
