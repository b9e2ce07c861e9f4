package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

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
	// Spent, when not nil, hears once what opening took, whatever gg_open said: fuel of it and
	// of gg_alloc, and time without the wait for others that open.
	Spent func(fuel int64, took time.Duration)

	until *deadline
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
	// Tokenizer is its kind; empty: not known, then a plugin is not held to those it is for.
	Tokenizer string `json:"-"`
}

// Open takes an instance for a sequence, lays its frame out and calls gg_open. It returns
// nil without an error where the plugin is not interested in the request. Others that open
// may make it wait; when ctx ends meanwhile it returns ctx's error, which is no failure of
// the plugin.
func (p *Plugin) Open(ctx context.Context, o Open) (*Instance, error) {
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
	case o.Model.Tokenizer != "" && !p.manifest.FitsTokenizer(o.Model.Tokenizer):
		return nil, p.openError("the model has a tokenizer of kind %s, the plugin is for %s", o.Model.Tokenizer, strings.Join(p.manifest.Tokenizers, ", "))
	case !p.Retain():
		return nil, p.openError("it was unloaded")
	}
	from := time.Now()
	g, err := p.take()
	if err != nil {
		p.Close()
		return nil, &Error{Code: CodeMemory, Plugin: p.manifest.Name, Version: p.manifest.Version, Message: err.Error()}
	}
	i := newInstance(p, g)
	i.until = o.until
	i.services, i.sequence, i.vocab = o.Services, uint32(o.Sequence), uint32(o.Model.Vocab)
	if o.Services.Logged != nil {
		i.logged = o.Services.Logged
	}
	i.key ^= o.Request.Seed
	i.state.open(&i.services, p.manifest)
	took := time.Since(from)
	if err := p.r.seats.take(ctx); err != nil {
		i.Close()
		return nil, err
	}
	from = time.Now()
	interested, e := i.openSeated(&o)
	took += time.Since(from)
	if o.Spent != nil {
		o.Spent(p.Fuel(abi.HookOpen)-i.opening, took)
	}
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

// openSeated opens and gives the seat back, whatever happens: what panics here, outside of
// the guest, is a service.
func (i *Instance) openSeated(o *Open) (interested bool, e *Error) {
	defer i.p.r.seats.leave()
	defer func() {
		if v := recover(); v != nil {
			interested, e = false, i.fail(CodePanic, "%v", v)
		}
	}()
	return i.open(o)
}

// open makes the frame and calls gg_open.
func (i *Instance) open(o *Open) (interested bool, e *Error) {
	i.gather = i.wanted(o.Model.Vocab)
	i.layout = i.p.manifest.Lay(i.p.hooks, abi.Extent{
		Vocab: o.Model.Vocab, Tokens: o.Prompt + o.Request.MaxTokens, PromptBytes: len(o.Text), Gather: len(i.gather),
	})
	var err *Error
	if i.at, err = i.alloc(i.layout.Size, abi.FrameAlign); err != nil {
		return false, err
	}
	i.look()
	i.writeHeader(o)
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

// wanted lists the tokens whose logits the plugin wants.
func (i *Instance) wanted(vocab int) []int32 {
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
		for _, id := range i.p.r.vocab.facts(i.services.Vocab).ends {
			if len(out) < abi.MaxGather && int(id) < vocab {
				out = append(out, id)
			}
		}
	}
	return out
}

// writeHeader fills what never changes.
func (i *Instance) writeHeader(o *Open) {
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
	for n, id := range i.gather {
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
