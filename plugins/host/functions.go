package host

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"ganglion/plugins/abi"
	"ganglion/plugins/sampling"
)

// hostFunction is a function that guests may import. Types are letters: i and I are
// integers, f and F floats of 32 and 64 bits.
type hostFunction struct {
	name            string
	params, results string
	call            func(i *Instance, s []uint64)
}

// hostFunctions is module ganglion, by the contract in ABI.md. Each is charged before it
// does anything; what it moves is charged where its size is known.
var hostFunctions = []hostFunction{
	{"log", "iii", "i", func(i *Instance, s []uint64) { s[0] = result(i.log(arg(s[0]), arg(s[1]), arg(s[2]))) }},
	{"set_error", "ii", "i", func(i *Instance, s []uint64) { s[0] = result(i.setError(arg(s[0]), arg(s[1]))) }},
	{"open_num", "ii", "F", func(i *Instance, s []uint64) { s[0] = math.Float64bits(i.openNum(arg(s[0]), arg(s[1]))) }},
	{"open_str", "iiii", "i", func(i *Instance, s []uint64) { s[0] = result(i.openStr(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]))) }},
	{"open_len", "ii", "i", func(i *Instance, s []uint64) { s[0] = result(i.openLen(arg(s[0]), arg(s[1]))) }},
	{"tok_bytes", "iii", "i", func(i *Instance, s []uint64) { s[0] = result(i.tokBytes(arg(s[0]), arg(s[1]), arg(s[2]))) }},
	{"tok_encode", "iiiii", "i", func(i *Instance, s []uint64) {
		s[0] = result(i.tokEncode(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]), arg(s[4])))
	}},
	{"tok_decode", "iiii", "i", func(i *Instance, s []uint64) { s[0] = result(i.tokDecode(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]))) }},
	{"tok_special", "i", "i", func(i *Instance, s []uint64) { s[0] = result(i.tokSpecial(arg(s[0]))) }},
	{"tok_is_eog", "i", "i", func(i *Instance, s []uint64) { s[0] = result(i.tokIsEOG(arg(s[0]))) }},
	{"text_tail", "iii", "i", func(i *Instance, s []uint64) { s[0] = result(i.textTail(arg(s[0]), arg(s[1]), arg(s[2]))) }},
	{"vocab_mask", "iiii", "i", func(i *Instance, s []uint64) { s[0] = result(i.vocabMask(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]))) }},
	{"vocab_bytes", "i", "i", func(i *Instance, s []uint64) { s[0] = result(i.vocabBytes(arg(s[0]))) }},
	{"vocab_load", "ii", "i", func(i *Instance, s []uint64) { s[0] = result(i.vocabLoad(arg(s[0]), arg(s[1]))) }},
	{"rand_u32", "", "i", func(i *Instance, s []uint64) { s[0] = uint64(i.random()) }},
	{"rand_f32", "", "f", func(i *Instance, s []uint64) {
		s[0] = uint64(math.Float32bits(float32(i.random()>>8) / (1 << 24)))
	}},
	{"kv_get", "iiii", "i", func(i *Instance, s []uint64) { s[0] = result(i.kvGet(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]))) }},
	{"kv_set", "iiii", "i", func(i *Instance, s []uint64) { s[0] = result(i.kvSet(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]))) }},
	{"kv_del", "ii", "i", func(i *Instance, s []uint64) { s[0] = result(i.kvDel(arg(s[0]), arg(s[1]))) }},
	{"clock_ms", "", "I", func(i *Instance, s []uint64) { s[0] = uint64(i.clock()) }},
	{"asset_read", "iiiii", "i", func(i *Instance, s []uint64) {
		s[0] = result(i.assetRead(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]), arg(s[4])))
	}},
	{"meta_set", "iiii", "i", func(i *Instance, s []uint64) { s[0] = result(i.metaSet(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]))) }},
	{"aux_open", "iii", "i", func(i *Instance, s []uint64) { s[0] = result(i.auxOpen(arg(s[0]), arg(s[1]), arg(s[2]))) }},
	{"aux_logits", "iiii", "i", func(i *Instance, s []uint64) { s[0] = result(i.auxLogits(arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3]))) }},
	{"aux_stats", "ii", "i", func(i *Instance, s []uint64) { s[0] = result(i.auxStats(arg(s[0]), arg(s[1]))) }},
	{"rest", "", "i", func(_ *Instance, s []uint64) { s[0] = 0 }}, // every call of the host is one
	{"next", "i", "i", func(i *Instance, s []uint64) { s[0] = result(i.next(int32(arg(s[0])))) }},
}

func arg(v uint64) uint32   { return uint32(v) }
func result(v int32) uint64 { return uint64(uint32(v)) }

// instantiateHost makes the functions of a module known to guests.
func instantiateHost(ctx context.Context, r wazero.Runtime, module string, functions []hostFunction) error {
	b := r.NewHostModuleBuilder(module)
	for _, f := range functions {
		b = b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
			i := ctx.(*callContext).i // every call of a guest is made with it
			i.rest()
			i.charge(0)
			f.call(i, stack)
		}), valueTypes(f.params), valueTypes(f.results)).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

func valueTypes(letters string) (out []api.ValueType) {
	for _, l := range letters {
		out = append(out, map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64, 'f': api.ValueTypeF32, 'F': api.ValueTypeF64}[l])
	}
	return out
}

// charge takes fuel for a call of the host, or for work that it is about to do.
func (i *Instance) charge(work int) {
	i.burn(hostCallFuel + int64(work)/bytesPerFuel)
}

func (i *Instance) burn(fuel int64) {
	if now := int64(i.g.fuel.Get()); now >= fuel { // most often: it is in the breath at hand
		i.g.fuel.Set(uint64(now - fuel))
		return
	}
	left := i.left() - fuel
	i.fuel(left)
	if left < 0 {
		i.throw(CodeFuel, "used all of %d in a host function", i.p.Fuel(i.hook))
	}
}

// bytes is a piece of guest memory, valid until guest code runs; ok is false where there
// is no such piece.
func (i *Instance) bytes(at, n uint32) (b []byte, ok bool) { return i.g.memory.Read(at, n) }

// input is bytes that the guest gives, charged.
func (i *Instance) input(at, n uint32) ([]byte, bool) {
	b, ok := i.bytes(at, n)
	if ok {
		i.burn(int64(n) / bytesPerFuel)
	}
	return b, ok
}

// give copies a result into the guest's buffer and returns its length.
func (i *Instance) give(b []byte, out, capacity uint32) int32 {
	if len(b) > int(capacity) {
		return abi.TooSmall(len(b))
	}
	to, ok := i.bytes(out, uint32(len(b)))
	if !ok {
		return abi.Invalid
	}
	i.burn(int64(len(b)) / bytesPerFuel)
	copy(to, b)
	return int32(len(b))
}

// giveString is give, without a copy of what does not fit.
func (i *Instance) giveString(s string, out, capacity uint32) int32 {
	return i.give(unsafe.Slice(unsafe.StringData(s), len(s)), out, capacity)
}

var logLevels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func (i *Instance) log(level, at, n uint32) int32 {
	b, ok := i.bytes(at, n)
	switch {
	case !ok || level >= uint32(len(logLevels)):
		return abi.Invalid
	case n > maxLogLine || !i.logged.take(int(n)):
		return abi.OverQuota
	}
	i.burn(logFuel + int64(n)/bytesPerFuel)
	i.tell(logLevels[level], b)
	return 0
}

// tell logs a line.
func (i *Instance) tell(level slog.Level, b []byte) {
	to := i.services.Log
	if to == nil {
		to = i.p.r.o.Log
	}
	if to != nil {
		m := i.p.manifest
		to.Log(context.Background(), level, "plugin says", "plugin", m.Name, "version", m.Version, "text", strings.ToValidUTF8(string(b), "\uFFFD"))
	}
}

func (i *Instance) setError(at, n uint32) int32 {
	if n > maxErrorText {
		return abi.OverQuota
	}
	b, ok := i.input(at, n)
	if !ok {
		return abi.Invalid
	}
	i.said = strings.ToValidUTF8(string(b), "\uFFFD")
	return 0
}

// place finds the value at a pointer into the text of gg_open.
func (i *Instance) place(at, n uint32) (any, int32) {
	if n > maxErrorText {
		return nil, abi.Invalid
	}
	b, ok := i.input(at, n)
	if !ok {
		return nil, abi.Invalid
	}
	if i.doc == nil {
		if len(i.text) == 0 {
			return nil, abi.NotFound
		}
		i.burn(textFuel * int64(len(i.text)))
		d := json.NewDecoder(bytes.NewReader(i.text))
		d.UseNumber()
		_ = d.Decode(&i.doc) // we wrote it
	}
	v, ok := abi.At(i.doc, string(b))
	if !ok {
		return nil, abi.NotFound
	}
	return v, 0
}

func (i *Instance) openNum(at, n uint32) float64 {
	v, _ := i.place(at, n)
	switch t := v.(type) {
	case json.Number:
		if f, err := t.Float64(); err == nil {
			return f
		}
	case bool:
		if t {
			return 1
		}
		return 0
	}
	return math.NaN()
}

func (i *Instance) openStr(at, n, out, capacity uint32) int32 {
	v, r := i.place(at, n)
	if r != 0 {
		return r
	}
	s, ok := v.(string)
	if ok {
		return i.giveString(s, out, capacity)
	}
	i.burn(textFuel * int64(len(i.text))) // making it may cost as much as all of it
	b, err := json.Marshal(v)
	if err != nil {
		return abi.Invalid
	}
	return i.give(b, out, capacity)
}

func (i *Instance) openLen(at, n uint32) int32 {
	v, r := i.place(at, n)
	if r != 0 {
		return r
	}
	switch t := v.(type) {
	case []any:
		return int32(len(t))
	case map[string]any:
		return int32(len(t))
	}
	return abi.Invalid
}

func (i *Instance) textTail(n, out, capacity uint32) int32 {
	if !i.p.manifest.View.Text || i.services.Text == nil {
		return abi.NotPermitted
	}
	n = min(n, capacity, 1<<20)
	i.charge(int(n))
	b := i.services.Text(int(n))
	return i.give(b[max(0, len(b)-int(n)):], out, capacity)
}

// random is the next random word of the call: word n mod 4 of draw 2 + n/4. The frame's
// eight words are draws 0 and 1.
func (i *Instance) random() uint32 {
	n := i.draw
	i.draw++
	return i.words(i.step, i.hook, 2+n/4)[n%4]
}

// words are the four random words of a draw.
func (i *Instance) words(step uint32, h abi.Hook, draw uint32) [4]uint32 {
	return sampling.Random(i.key, [4]uint32{i.sequence, step, uint32(h), draw})
}

// can tells whether the plugin may use a capability.
func (i *Instance) can(capability string) bool { return i.p.manifest.Can(capability) }

func (i *Instance) clock() int64 {
	if !i.can(abi.CapClock) || i.services.Clock == nil {
		return abi.NotPermitted
	}
	return i.services.Clock()
}
