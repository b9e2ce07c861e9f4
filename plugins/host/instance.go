package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"ganglion/plugins/abi"
)

// Open is what an instance is opened for: one sequence of one request.
type Open struct {
	Config   json.RawMessage // as abi.Schema.Fill returned it; nil: all defaults
	Request  Request
	Model    Model
	Sequence int
	Prompt   int    // tokens of the prompt
	Text     string // of the prompt, for plugins that may rewrite it
	Services Services
}

// Request is what a plugin is told of a request.
type Request struct {
	Temperature      float64 `json:"temperature"`
	TopK             int     `json:"top_k"`
	TopP             float64 `json:"top_p"`
	MinP             float64 `json:"min_p"`
	PresencePenalty  float64 `json:"presence_penalty"`
	FrequencyPenalty float64 `json:"frequency_penalty"`
	MaxTokens        int     `json:"max_tokens"`
	Seed             uint64  `json:"seed,string"`
	Stream           bool    `json:"stream"`
}

// Model is what a plugin is told of a model.
type Model struct {
	Name    string `json:"name"`
	Vocab   int    `json:"vocab"`
	Context int    `json:"context"`
}

// Instance is a plugin as one sequence runs it. It belongs to one goroutine at a time.
type Instance struct {
	p     *Plugin
	g     *guest // nil: closed
	ctx   context.Context
	stack [2]uint64

	// The frame. Where it is and how it is laid out never changes; block is looked at
	// anew after each call.
	at     uint32
	layout *abi.Layout
	block  []byte

	services Services
	text     []byte // of gg_open
	doc      any    // text, parsed at first use
	key      uint64 // of the random words
	sequence uint32
	vocab    uint32

	hook abi.Hook // being called; 0: none
	step uint32
	draw uint32 // random words that host functions gave in this call

	said   string // set_error
	thrown *Error // why a host function ended the call
	err    *Error // the first failure: nothing is called afterwards

	state   kept
	logged  int
	opened  int // auxiliary sequences
	meta    int
	program *program // gg_run
}

// callContext carries the instance to the host functions of a call.
type callContext struct {
	context.Context
	i *Instance
}

func newInstance(p *Plugin, g *guest) *Instance {
	i := &Instance{p: p, g: g}
	sum := sha256.Sum256([]byte(p.manifest.Name))
	i.key = binary.LittleEndian.Uint64(sum[:])
	i.ctx = &callContext{context.Background(), i}
	return i
}

// Open takes an instance for a sequence, lays its frame out and calls gg_open. It returns
// nil without an error where the plugin is not interested in the request.
func (p *Plugin) Open(o Open) (*Instance, error) {
	if o.Config == nil {
		var err error
		if o.Config, err = p.manifest.Schema.Fill(nil); err != nil {
			return nil, p.openError("the configuration: %v", err)
		}
	}
	switch {
	case o.Model.Vocab <= 0 || o.Model.Vocab > abi.EditID || o.Prompt < 0 || o.Request.MaxTokens < 0 || o.Sequence < 0:
		return nil, p.openError("vocabulary %d, prompt %d, at most %d tokens, sequence %d", o.Model.Vocab, o.Prompt, o.Request.MaxTokens, o.Sequence)
	case o.Model.Vocab < p.manifest.MinVocab:
		return nil, p.openError("the model has %d tokens, the plugin needs %d", o.Model.Vocab, p.manifest.MinVocab)
	case !p.Retain():
		return nil, p.openError("it was unloaded")
	}
	g, err := p.take()
	if err != nil {
		p.Close()
		return nil, &Error{Code: CodeMemory, Plugin: p.manifest.Name, Version: p.manifest.Version, Message: err.Error()}
	}
	i := newInstance(p, g)
	i.services, i.sequence, i.vocab = o.Services, uint32(o.Sequence), uint32(o.Model.Vocab)
	i.key ^= o.Request.Seed
	i.state.open(&i.services, p.manifest)
	interested, e := i.open(&o)
	if e != nil || !interested {
		i.Close()
		if e != nil {
			return nil, e
		}
		return nil, nil
	}
	return i, nil
}

func (p *Plugin) openError(format string, args ...any) *Error {
	return &Error{Code: CodeOpen, Plugin: p.manifest.Name, Version: p.manifest.Version, Message: fmt.Sprintf(format, args...)}
}

// open makes the frame and calls gg_open.
func (i *Instance) open(o *Open) (interested bool, e *Error) {
	gather := i.gather(o.Model.Vocab)
	i.layout = i.p.manifest.Lay(i.p.hooks, abi.Extent{
		Vocab: o.Model.Vocab, Tokens: o.Prompt + o.Request.MaxTokens, PromptBytes: len(o.Text), Gather: len(gather),
	})
	var err *Error
	if i.at, err = i.alloc(i.layout.Size, abi.FrameAlign); err != nil {
		return false, err
	}
	i.look()
	i.writeHeader(o, gather)
	if !i.p.opens {
		return true, nil
	}
	if err := i.writeText(o); err != nil {
		return false, err
	}
	at, err := i.alloc(len(i.text), 8)
	if err != nil {
		return false, err
	}
	i.g.memory.Write(at, i.text) // alloc checked the place
	i.look()
	i.stack[0], i.stack[1] = uint64(at), uint64(len(i.text))
	switch r, err := i.invoke(i.g.open, abi.HookOpen); {
	case err != nil:
		return false, err
	case r == 0:
		return true, nil
	case r == 1:
		return false, nil
	default:
		if i.said != "" {
			return false, i.fail(CodeOpen, "%s", i.said)
		}
		return false, i.fail(CodeOpen, "gg_open returned %d", r)
	}
}

// alloc asks the guest for a block.
func (i *Instance) alloc(size, align int) (uint32, *Error) {
	i.stack[0], i.stack[1] = uint64(size), uint64(align)
	r, err := i.invoke(i.g.alloc, abi.HookOpen)
	if err != nil {
		return 0, err
	}
	at := uint32(r)
	if at == 0 {
		return 0, i.fail(CodeMemory, "gg_alloc has no room for %d bytes", size)
	}
	if at%uint32(align) != 0 || uint64(at)+uint64(size) > uint64(i.g.memory.Size()) {
		return 0, i.fail(CodeMemory, "gg_alloc gave %d for %d bytes aligned to %d, in a memory of %d", at, size, align, i.g.memory.Size())
	}
	return at, nil
}

// gather lists the tokens whose logits the plugin wants.
func (i *Instance) gather(vocab int) []int32 {
	v := &i.p.manifest.View
	if len(v.Gather) == 0 && !v.GatherEOG {
		return nil
	}
	var out []int32
	for _, id := range v.Gather {
		if int(id) < vocab {
			out = append(out, id)
		}
	}
	if v.GatherEOG && i.services.Vocab != nil {
		for id := range int32(vocab) {
			if len(out) < abi.MaxGather && i.services.Vocab.EOG(id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// look takes the frame's bytes anew: memory may have moved.
func (i *Instance) look() {
	i.block, _ = i.g.memory.Read(i.at, uint32(i.layout.Size)) // it was there, and memory does not shrink
}

func (i *Instance) put(off int, v uint32) { binary.LittleEndian.PutUint32(i.block[off:], v) }
func (i *Instance) get(off int) uint32    { return binary.LittleEndian.Uint32(i.block[off:]) }

// writeHeader fills what never changes.
func (i *Instance) writeHeader(o *Open, gather []int32) {
	clear(i.block[:abi.HeaderBytes])
	l := i.layout
	for _, f := range [...]struct{ off, value int }{
		{abi.OffMagic, abi.Magic}, {abi.OffSize, l.Size}, {abi.OffABI, abi.Major<<16 | abi.Minor},
		{abi.OffSequence, o.Sequence}, {abi.OffVocab, o.Model.Vocab}, {abi.OffLastToken, abi.NoToken},
		{abi.OffNPrompt, o.Prompt}, {abi.OffHistory, l.History}, {abi.OffCandCap, l.CandCap},
		{abi.OffCandIDs, l.CandIDs}, {abi.OffCandLogits, l.CandLogits}, {abi.OffGatherN, l.GatherN},
		{abi.OffGatherIDs, l.GatherIDs}, {abi.OffGatherLogits, l.GatherLogits}, {abi.OffFull, l.Full},
		{abi.OffMask, l.Mask}, {abi.OffEdit, l.Edits}, {abi.OffEditCap, l.EditCap},
		{abi.OffOut, l.Out}, {abi.OffOutCap, l.OutCap}, {abi.OffIn, l.In},
	} {
		i.put(f.off, uint32(f.value))
	}
	for n, id := range gather {
		i.put(l.GatherIDs+4*n, uint32(id))
	}
	if l.Mask > 0 {
		mask := i.block[l.Mask : l.Mask+(o.Model.Vocab+31)/32*4]
		for n := range mask {
			mask[n] = 0xFF
		}
	}
}

// writeText makes the text of gg_open.
func (i *Instance) writeText(o *Open) *Error {
	var err error
	i.text, err = json.Marshal(struct {
		Config  json.RawMessage `json:"config"`
		Request *Request        `json:"request"`
		Model   *Model          `json:"model"`
		Plugin  struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"plugin"`
		Sequence int `json:"sequence"`
		Prompt   int `json:"n_prompt"`
	}{o.Config, &o.Request, &o.Model, struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}{i.p.manifest.Name, i.p.manifest.Version}, o.Sequence, o.Prompt})
	if err != nil {
		return i.fail(CodeOpen, "the configuration: %v", err)
	}
	return nil
}

// Plugin is what the instance is of.
func (i *Instance) Plugin() *Plugin { return i.p }

// Has tells whether the plugin has a hook.
func (i *Instance) Has(h abi.Hook) bool { return i.p.hooks.Has(h) }

// Frame is the frame with its buffers, in the guest's memory. It is valid until the next
// call, nil once the instance is closed.
func (i *Instance) Frame() []byte { return i.block }

// Layout tells where the buffers are. It does not change.
func (i *Instance) Layout() *abi.Layout { return i.layout }

// Close gives the instance back. It may be called twice.
func (i *Instance) Close() error {
	if i.g == nil {
		return nil
	}
	if i.program != nil {
		i.program.end()
	}
	g := i.g
	i.g, i.block = nil, nil
	if i.err == nil {
		i.p.giveBack(g)
	} else {
		g.close()
	}
	i.p.Close()
	return nil
}

// fail keeps the first failure.
func (i *Instance) fail(code Code, format string, args ...any) *Error {
	if i.err == nil {
		i.err = i.Failure(code, format, args...)
	}
	return i.err
}

// invoke calls a function of the guest with the fuel of a hook. Its arguments are in
// i.stack, its result, if it has one, is returned.
func (i *Instance) invoke(f api.Function, h abi.Hook) (int32, *Error) {
	i.hook, i.draw, i.said = h, 0, ""
	fuel := i.p.Fuel(h)
	i.g.fuel.Set(uint64(fuel))
	err := f.CallWithStack(i.ctx, i.stack[:])
	i.hook = 0
	if err != nil {
		return 0, i.judge(err, fuel)
	}
	return int32(uint32(i.stack[0])), nil
}

// judge says what ended a call.
func (i *Instance) judge(err error, fuel int64) *Error {
	left := int64(i.g.fuel.Get())
	text := err.Error()
	switch {
	case i.thrown != nil:
		i.err = i.thrown
		return i.err
	case strings.HasPrefix(text, "wasm error: unreachable") && left < 0:
		return i.fail(CodeFuel, "used all of %d", fuel)
	case strings.HasPrefix(text, "wasm error: unreachable") && i.g.linear.refused:
		return i.fail(CodeMemory, "ended itself after its memory of %s pages was full: %s", strconv.Itoa(i.p.manifest.MemoryPages), trapMessage(err))
	case strings.HasPrefix(text, "wasm error: ") || strings.HasPrefix(text, "stack overflow"):
		return i.fail(CodeTrap, "%s", trapMessage(err))
	}
	return i.fail(CodePanic, "%s", trapMessage(err))
}

// throw ends the call from inside a host function.
func (i *Instance) throw(code Code, format string, args ...any) {
	i.thrown = i.Failure(code, format, args...)
	panic(i.thrown)
}

// finite tells whether a number can stand in a distribution.
func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
