package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
)

// wideVocab is as large as vocabularies are: 262,144 tokens of 8 bytes on average, a third
// of them not Latin.
type wideVocab struct{ letterVocab }

var wideTokens = func() (out [][]byte) {
	for id := range 262144 {
		switch id % 3 {
		case 0:
			out = append(out, fmt.Appendf(nil, " w%06d", id))
		case 1:
			out = append(out, fmt.Appendf(nil, "漢字%c", rune(0x4e00+id%20000)))
		default:
			out = append(out, fmt.Appendf(nil, "xx%cx", rune(0x400+id%200)))
		}
	}
	return out
}()

func (wideVocab) Size() int             { return len(wideTokens) }
func (wideVocab) Key() string           { return "wide" }
func (wideVocab) Bytes(id int32) []byte { return bytes.Clone(wideTokens[id]) } // as tokenizers make them

// priced is an instance whose memory is filled with a byte and whose host functions can
// be called as guest code would.
func priced(t *testing.T, o Open) *Instance {
	t.Helper()
	r := newRuntime(t, Options{})
	o.Services.Vocab = wideVocab{}
	o.Model.Vocab = wideVocab{}.Size()
	o.Services.Meta = func(string, []byte) {}
	return open(t, load(t, r, testGuest(strings.Replace(ordinary, `"memory_pages":8`, `"memory_pages":256`, 1))), o)
}

// TestFuelBoundsHostFunctions calls host functions with the arguments that take longest
// for their fuel: what fuel pays for is bounded in time. The bound is several times what
// was measured (in brackets, ns for a unit on a Zen 2).
func TestFuelBoundsHostFunctions(t *testing.T) {
	if racing {
		t.Skip("times of the race detector say nothing")
	}
	const worst, most = 25.0, 400_000_000 // ns, fuel
	o := opening(0)
	big := map[string]any{"mode": 0, "words": []string{"a", "word2"}, "long": strings.Repeat("y", 300_000), "list": make([]int, 100_000)}
	o.Config, _ = json.Marshal(big)
	i := priced(t, o)
	memory, _ := i.g.memory.Read(0, i.g.memory.Size())
	const at = 64 << 10 // a place of the guest's that is overwritten here
	put := func(text string) uint32 { return uint32(copy(memory[at:], text)) }
	out := i.g.memory.Size() - 40<<10
	all := []string{"Arabic", "Armenian", "Balinese", "Bengali", "Bopomofo", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek", "Gujarati", "Han", "Hangul", "Hebrew", "Khmer", "Lao"}
	n := 0
	fresh := func() string { n++; return fmt.Sprint(n) } // arguments that no mask is kept of
	for _, c := range []struct {
		name string
		hook abi.Hook
		call func() int32
	}{
		{"log of nothing", abi.HookPlan, func() int32 { return i.log(3, at, 0) }},
		{"open_str of a long text with no room", abi.HookPlan, func() int32 { return i.openStr(at, put("/config/long"), out, 0) }},
		{"open_str of a list", abi.HookPlan, func() int32 { return i.openStr(at, put("/config/list"), out, 0) }},
		{"meta_set of a megabyte", abi.HookPlan, func() int32 { return i.metaSet(at, 1, 0, i.g.memory.Size()) }},
		{"meta_set", abi.HookPlan, func() int32 { i.meta = 0; return i.metaSet(at, put("1"), at, 1) }},
		{"kv_get of a long key", abi.HookPlan, func() int32 { return i.kvGet(0, i.g.memory.Size(), out, 0) }},
		{"asset_read of a long name", abi.HookPlan, func() int32 { return i.assetRead(0, i.g.memory.Size(), 0, out, 0) }},
		{"set_error", abi.HookPlan, func() int32 { return i.setError(0, 1<<10) }},
		{"tok_bytes", abi.HookPlan, func() int32 { return i.tokBytes(1, out, 64) }},
		{"tok_special", abi.HookPlan, func() int32 { return i.tokSpecial(2) }},
		{"a regexp that does not fit", abi.HookOpen, func() int32 { return i.vocabMask(maskRegexp, at, put("("+strings.Repeat("ab", 500)+"){1000}"), out) }},
		{"a long regexp", abi.HookOpen, func() int32 {
			return i.vocabMask(maskRegexp, at, put(`[a-z]?`+strings.Repeat(`\pL?`, 20)+fresh()), out)
		}},
		{"a regexp of many threads", abi.HookOpen, func() int32 { return i.vocabMask(maskRegexp, at, put("(x?){1,8}"+fresh()), out) }},
		{"one script many times", abi.HookOpen, func() int32 {
			return i.vocabMask(maskScriptAny, at, put(strings.TrimSuffix(strings.Repeat("Yi,", 30), ",")), out)
		}},
		{"too many names", abi.HookOpen, func() int32 {
			return i.vocabMask(maskScriptAny, at, put(strings.TrimSuffix(strings.Repeat("Yi,", 1300), ",")), out)
		}},
		{"many scripts", abi.HookOpen, func() int32 {
			all[0], all[n%15+1] = all[n%15+1], all[0]
			n++
			return i.vocabMask(maskScriptAll, at, put(strings.Join(all, ",")), out)
		}},
		{"a substring", abi.HookOpen, func() int32 { return i.vocabMask(maskContains, at, put("xx"+fresh()), out) }},
		{"a long prefix", abi.HookOpen, func() int32 { return i.vocabMask(maskPrefix, at, put(strings.Repeat("x", 4000)+fresh()), out) }},
		{"broken", abi.HookOpen, func() int32 {
			i.p.r.vocab.masks = nil // a mask without an argument would be at hand
			return i.vocabMask(maskBroken, at, 0, out)
		}},
		{"the trie outside of open", abi.HookPlan, func() int32 { return i.vocabBytes(1) }},
	} {
		runtime.LockOSThread()
		var took time.Duration
		var fuel int64
		result, begin := int32(0), threadTime()
		// Clocks of threads may tick in milliseconds.
		for calls := 0; calls < 3 || took < 30*time.Millisecond; calls++ {
			i.hook = c.hook
			i.fuel(most)
			i.charge(0)
			result = c.call()
			fuel += most - i.left()
			took = threadTime() - begin
		}
		runtime.UnlockOSThread()
		per := float64(took.Nanoseconds()) / float64(fuel)
		t.Logf("%s: %.1f ns a unit, result %d", c.name, per, result)
		if per > worst {
			t.Errorf("%s: %.1f ns a unit of fuel, at most %g", c.name, per, worst)
		}
	}
	i.hook = 0
}

// TestVocabularyIsReadOnce: what each instance asks of a vocabulary is kept.
func TestVocabularyIsReadOnce(t *testing.T) {
	v := &countingVocab{}
	o := opening(0)
	o.Services.Vocab, o.Model.Vocab = v, 262144
	p := load(t, newRuntime(t, Options{}), testGuest(`,"hooks":["plan"],"view":{"logits":"gather","gather":["eog"]}`))
	open(t, p, o)
	first := v.asked
	open(t, p, o)
	if first == 0 || v.asked != first {
		t.Errorf("it was asked %d times, then %d", first, v.asked-first)
	}
}

type countingVocab struct {
	wideVocab
	asked int
}

func (v *countingVocab) Key() string { return "counting" }
func (v *countingVocab) EOG(id int32) bool {
	v.asked++
	return id == 7
}

// TestMasksOfOnePluginPushOutNobodyElses fills the cache.
func TestMasksOfOnePluginPushOutNobodyElses(t *testing.T) {
	var c vocabCache
	made := 0
	get := func(plugin string, n int) {
		c.mask(maskKey{"v", 1, fmt.Sprint(plugin, n)}, plugin, func() []byte { made++; return make([]byte, 32<<10) })
	}
	get("other", 1)
	for n := range 3000 {
		get("greedy", n)
	}
	if c.owned["greedy"] > masksShare || c.bytes > masksKept || c.bytes != c.owned["greedy"]+32<<10 {
		t.Errorf("%d bytes are kept, %d of one plugin", c.bytes, c.owned["greedy"])
	}
	made = 0
	get("other", 1)
	get("greedy", 2999)
	if made != 0 {
		t.Errorf("%d masks were made again", made)
	}
	if get("greedy", 0); made != 1 {
		t.Error("the oldest mask was kept")
	}
	for n := range 10 {
		for plugin := range 8 {
			for k := range 100 {
				get(fmt.Sprint("p", plugin), n*100+k)
			}
		}
	}
	if c.bytes > masksKept {
		t.Errorf("%d bytes are kept", c.bytes)
	}
}

// TestLogIsBounded: lines count, empty ones too, and whoever takes an instance's place
// counts on.
func TestLogIsBounded(t *testing.T) {
	count := new(LogCount)
	lines := 0
	for range 3 {
		o := opening(0)
		o.Services.Logged = count
		i := priced(t, o)
		i.hook = abi.HookPlan
		for range 300 {
			i.fuel(1 << 30)
			if i.log(3, 0, 0) == 0 {
				lines++
			}
		}
		i.hook = 0
	}
	if lines != maxLogLines {
		t.Errorf("%d lines, want %d", lines, maxLogLines)
	}
	if c := (LogCount{}); !c.take(maxLog-logLine) || c.take(1) {
		t.Error("a line of all bytes and one more")
	}
}

// TestOverwrittenValuesAreBounded: they are kept for rewinding.
func TestOverwrittenValuesAreBounded(t *testing.T) {
	var k kept
	value := make([]byte, maxStoreValue)
	n := 0
	for ; n < maxWrites && k.set("k", value); n++ {
	}
	if n == 0 || n > maxWriteBytes/maxStoreValue {
		t.Errorf("%d writes of %d bytes", n, len(value))
	}
	if k.rewind(1); !k.set("k", value) || k.held != 2*(len(value)+1) {
		t.Errorf("after rewinding %d bytes are held", k.held)
	}
}
