package builtin

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// vocabulary is what the host functions of a test know about tokens.
type vocabulary struct {
	size    int
	pieces  map[uint32]string
	encoded map[string][]uint32 // what the tokeniser makes of a text; others: longest pieces first
	eog     []uint32
	// noEncode makes the tokeniser fail, so that nothing can be forced.
	noEncode bool
}

// of makes a vocabulary of single bytes (ids 0 to 255), pieces, and one end token.
func of(pieces ...string) *vocabulary {
	v := &vocabulary{pieces: map[uint32]string{}}
	for i := range 256 {
		v.pieces[uint32(i)] = string([]byte{byte(i)})
	}
	for i, s := range pieces {
		v.pieces[uint32(256+i)] = s
	}
	v.size = 256 + len(pieces) + 1
	v.eog = []uint32{uint32(v.size - 1)}
	return v
}

func (v *vocabulary) encode(text string) []uint32 {
	if ids, ok := v.encoded[text]; ok {
		return ids
	}
	var out []uint32
	for len(text) > 0 {
		best, id := "", uint32(0)
		for i, s := range v.pieces {
			if s != "" && strings.HasPrefix(text, s) && (len(s) > len(best) || len(s) == len(best) && i < id) {
				best, id = s, i
			}
		}
		if best == "" {
			return nil
		}
		out, text = append(out, id), text[len(best):]
	}
	return out
}

// trie lays the pieces out as vocab_load does.
func (v *vocabulary) trie() []byte {
	type entry struct {
		text string
		id   uint32
	}
	var all []entry
	for id, s := range v.pieces {
		if s != "" {
			all = append(all, entry{s, id})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if c := strings.Compare(a.text, b.text); c != 0 {
			return c
		}
		return int(a.id) - int(b.id)
	})
	var nodes []uint32
	var walk func(part []entry, depth int)
	walk = func(part []entry, depth int) {
		for len(part) > 0 {
			c, n := part[0].text[depth], 0
			for n < len(part) && part[n].text[depth] == c {
				n++
			}
			group := part[:n]
			part = part[n:]
			at := len(nodes)
			nodes = append(nodes, math.MaxUint32, 0)
			if len(group[0].text) == depth+1 {
				nodes[at] = group[0].id
				group = group[1:]
			}
			var twins []entry
			for len(group) > 0 && len(group[0].text) == depth+1 {
				twins, group = append(twins, group[0]), group[1:]
			}
			walk(group, depth+1)
			nodes[at+1] = uint32(c) | uint32(len(nodes)/2)<<8
			for _, e := range twins {
				nodes = append(nodes, e.id, uint32(c)|uint32(len(nodes)/2+1)<<8)
			}
		}
	}
	walk(all, 0)
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(nodes)/2))
	for _, w := range nodes {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// spans lays the pieces out as vocab_load does with kind 2, each span found by looking at all
// texts that it is about.
func (v *vocabulary) spans() []byte {
	trie := v.trie()
	n := binary.LittleEndian.Uint32(trie)
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n), uint32(v.size))
	var path []byte
	var ends []uint32
	for at := range n {
		for len(ends) > 0 && ends[len(ends)-1] <= at {
			path, ends = path[:len(path)-1], ends[:len(ends)-1]
		}
		link := binary.LittleEndian.Uint32(trie[8+8*at:])
		before := len(path)
		path, ends = append(path, byte(link)), append(ends, link>>8)
		span := uint32(1 << 23)
		if characters(string(path[:before])) {
			below := []string{}
			for k := at; k < link>>8; k++ {
				if id := binary.LittleEndian.Uint32(trie[4+8*k:]); id != math.MaxUint32 {
					below = append(below, v.pieces[id][before:])
				}
			}
			span = spanOf(below...)
		}
		b = append(b, trie[4+8*at:12+8*at]...)
		b = binary.LittleEndian.AppendUint32(b, span)
	}
	for id := range uint32(v.size) {
		span := uint32(1 << 23)
		if s := v.pieces[id]; s != "" {
			span = spanOf(s)
		}
		b = binary.LittleEndian.AppendUint32(b, span)
	}
	return b
}

// characters tells whether a text ends at the end of a character, or in none.
func characters(s string) bool {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 && !utf8.FullRuneInString(s) {
			return false
		}
		s = s[n:]
	}
	return true
}

// spanOf is the span of texts.
func spanOf(texts ...string) (span uint32) {
	kinds := []string{"abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", "\n", "\t\r", "\"", "\\", "'",
		",", ".", "-", "_", ":;!?", "()", "[]", "{}", "/@#&=+$%*^|~`", "<>"}
	most := 0
	for _, s := range texts {
		for k := max(len(s)-3, 0); k < len(s); k++ { // the last character may lack bytes
			if utf8.ValidString(s[:k]) && !utf8.FullRuneInString(s[k:]) {
				s = s[:k] + "\uFFFD"
			}
		}
		if !utf8.ValidString(s) {
			return 1 << 23
		}
		most = max(most, utf8.RuneCountInString(s))
		for _, r := range s {
			bit := slices.IndexFunc(kinds, func(k string) bool { return strings.ContainsRune(k, r) })
			switch {
			case r >= 0x80:
				bit = 22
			case bit < 0:
				bit = 21
			}
			span |= 1 << bit
		}
	}
	if most > 254 {
		return 1 << 23
	}
	return span | uint32(most)<<24
}

// in tells whether a token is in a mask of vocab_mask.
func (v *vocabulary) in(kind uint32, arg string, id uint32) bool {
	s := v.pieces[id]
	switch kind {
	case 0:
		return s != "" && regexp.MustCompile(arg).MatchString(s)
	case 1:
		return strings.HasPrefix(s, arg)
	case 2:
		return s != "" && strings.Contains(s, arg)
	case 4:
		return !regexp.MustCompile(`\pL`).MatchString(regexp.MustCompile(`\p{`+arg+`}`).ReplaceAllString(s, ""))
	case 5:
		return s != "" && !strings.Contains(s, "\uFFFD") && strings.ToValidUTF8(s, "\uFFFD") != s
	case 6:
		return s == "" && !slices.Contains(v.eog, id)
	case 7:
		return slices.Contains(v.eog, id)
	}
	return false
}

// at finds a JSON pointer without escapes.
func (g *guest) at(pointer string) any {
	var v any
	if err := json.Unmarshal(g.open, &v); err != nil {
		g.t.Fatal(err)
	}
	for _, name := range strings.Split(pointer, "/")[1:] {
		switch c := v.(type) {
		case map[string]any:
			v = c[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// hostModule gives the guest the functions that the plugins of this package use.
func (g *guest) hostModule(r wazero.Runtime) {
	text := func(m api.Module, at, n uint32) string {
		b, ok := m.Memory().Read(at, n)
		if !ok {
			g.t.Errorf("a pointer out of memory: %d, %d bytes", at, n)
		}
		return string(b)
	}
	give := func(m api.Module, s string, out, room uint32) int32 {
		if len(s) > int(room) {
			return int32(-100 - len(s))
		}
		if !m.Memory().WriteString(out, s) {
			g.t.Errorf("a buffer out of memory: %d, %d bytes", out, len(s))
		}
		return int32(len(s))
	}
	b := r.NewHostModuleBuilder("ganglion")
	def := func(name string, f any) { b.NewFunctionBuilder().WithFunc(f).Export(name) }
	def("set_error", func(_ context.Context, m api.Module, at, n uint32) int32 { g.fault = text(m, at, n); return 0 })
	def("open_num", func(_ context.Context, m api.Module, at, n uint32) float64 {
		switch v := g.at(text(m, at, n)).(type) {
		case float64:
			return v
		case bool:
			if v {
				return 1
			}
			return 0
		}
		return math.NaN()
	})
	def("open_str", func(_ context.Context, m api.Module, at, n, out, room uint32) int32 {
		switch v := g.at(text(m, at, n)).(type) {
		case string:
			return give(m, v, out, room)
		case nil:
			return -4
		default:
			s, _ := json.Marshal(v)
			return give(m, string(s), out, room)
		}
	})
	def("open_len", func(_ context.Context, m api.Module, at, n uint32) int32 {
		switch v := g.at(text(m, at, n)).(type) {
		case []any:
			return int32(len(v))
		case map[string]any:
			return int32(len(v))
		}
		return -4
	})
	def("log", func(_ context.Context, m api.Module, level, at, n uint32) int32 { g.t.Log(text(m, at, n)); return 0 })
	def("asset_read", func(_ context.Context, m api.Module, name, nlen, off, out, room uint32) int32 {
		a := g.assets[text(m, name, nlen)]
		if int(off) >= len(a) {
			return 0
		}
		n := min(len(a)-int(off), int(room))
		return give(m, string(a[off:int(off)+n]), out, room)
	})
	def("text_tail", func(_ context.Context, m api.Module, n, out, room uint32) int32 { return 0 })
	def("rand_f32", func(_ context.Context) float32 { return 0.5 })
	def("rest", func() int32 { return 0 })
	def("rand_u32", func(_ context.Context) uint32 { return 0 })
	def("tok_bytes", func(_ context.Context, m api.Module, id, out, room uint32) int32 {
		return give(m, g.vocab.pieces[id], out, room)
	})
	def("tok_is_eog", func(_ context.Context, id uint32) int32 {
		if slices.Contains(g.vocab.eog, id) {
			return 1
		}
		return 0
	})
	def("tok_encode", func(_ context.Context, m api.Module, at, n, flags, out, room uint32) int32 {
		if g.vocab.noEncode {
			return -1
		}
		ids := g.vocab.encode(text(m, at, n))
		if len(ids) > int(room) {
			return int32(-100 - len(ids))
		}
		for i, id := range ids {
			m.Memory().WriteUint32Le(out+uint32(4*i), id)
		}
		return int32(len(ids))
	})
	def("tok_decode", func(_ context.Context, m api.Module, ids, n, out, room uint32) int32 {
		var s strings.Builder
		for i := range n {
			id, _ := m.Memory().ReadUint32Le(ids + 4*i)
			s.WriteString(g.vocab.pieces[id])
		}
		return give(m, s.String(), out, room)
	})
	def("vocab_mask", func(_ context.Context, m api.Module, kind, at, n, out uint32) (count int32) {
		words := make([]uint32, (g.vocab.size+31)/32)
		arg := text(m, at, n)
		for id := range g.vocab.size {
			if s, known := g.vocab.pieces[uint32(id)]; (known && s != "" || kind > 5) && g.vocab.in(kind, arg, uint32(id)) {
				words[id/32] |= 1 << (id % 32)
				count++
			}
		}
		g.writeWords(m, out, words)
		return count
	})
	loads := [3][]byte{}
	load := func(kind uint32) []byte {
		if loads[kind] == nil {
			loads[1], loads[2] = g.vocab.trie(), g.vocab.spans()
		}
		return loads[kind]
	}
	def("vocab_bytes", func(_ context.Context, kind uint32) int32 { return int32(len(load(kind))) })
	def("vocab_load", func(_ context.Context, m api.Module, kind, at uint32) int32 {
		m.Memory().Write(at, load(kind))
		return int32(len(load(kind)))
	})
	def("aux_open", func(_ context.Context, m api.Module, at, n, flags uint32) int32 { return 1 })
	def("aux_logits", func(_ context.Context, m api.Module, seq, ids, n, out uint32) int32 {
		for i := range n {
			id, _ := m.Memory().ReadUint32Le(ids + 4*i)
			m.Memory().WriteUint32Le(out+4*i, math.Float32bits(g.second[id]))
		}
		return int32(n)
	})
	def("aux_stats", func(_ context.Context, m api.Module, seq, out uint32) int32 {
		sum := 0.0
		for _, l := range g.second {
			sum += math.Exp(float64(l))
		}
		m.Memory().WriteUint32Le(out+12, math.Float32bits(float32(math.Log(sum))))
		return 0
	})
	if _, err := b.Instantiate(ctx); err != nil {
		g.t.Fatal(err)
	}
}

// writeWords is putWords before the guest is known.
func (g *guest) writeWords(m api.Module, at uint32, w []uint32) {
	for i, v := range w {
		m.Memory().WriteUint32Le(at+uint32(4*i), v)
	}
}
