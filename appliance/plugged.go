package appliance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ganglion/gpu/engine"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/sampling"
)

// plugged is what a sequence with plugins has besides. Its guests run in a goroutine of
// its own, one hook after another: it chooses tokens from the heads that it is given, and
// plans the next step while the model computes. So a slow guest delays its own sequence
// alone: others wait for it no longer than Config.PluginWait, and it misses steps until
// it is done.
type plugged struct {
	pipe    *pipeline.Pipeline
	prompt  *promptText // as plugins see it
	chosen  []chosen
	shadows []*shadow       // plugins that only watch
	watched watched         // what they have not seen yet
	jobs    chan pluggedJob // at most one is under way
	done    chan struct{}   // holds one signal when a job with heads is done

	heads     []engine.Head // of the job, with copies of what they hold
	used      int           // of these
	fault     error         // of planning, to be told at the next token
	next      []int32       // tokens that are forced, as known after the job
	unsettled bool          // a plugin may refuse them

	aux      []*auxiliary      // auxiliary sequences of all plugins
	deciding bool              // their rows are those of the step that is being decided
	scratch  *sampling.Scratch // of the goroutine
	claims   int               // slots of aux, under the scheduler's mutex
	refused  map[string]bool   // plugins that could not have one: what follows is not their fault

	// The scheduler's own.
	at   bool // a job with heads is under way: the sequence is the goroutine's
	late bool // and others no longer wait for it

	began   bool // the prompt is in place
	pending []byte
	tail    []byte
	metaMu  sync.Mutex
	meta    map[string]string
}

// openPlugins opens the plugins of a sequence, lets them see its prompt, and starts its
// text. ctx ends with the request. The error is one for the user.
func (s *scheduler) openPlugins(ctx context.Context, q *sequence, r *Request, list []chosen) error {
	g := &plugged{prompt: s.newPrompt(q, r), chosen: list, jobs: make(chan pluggedJob, 1), done: make(chan struct{}, 1)}
	o := pipeline.Options{
		Vocab: s.info.Vocab, Seed: uint64(q.sampling.Seed), Temperature: q.sampling.Temperature,
		Single: q.sampling.CutsToOne(), Suppressed: q.sampling.Suppressed,
		Max: q.max, Changes: r.PluginChanges || r.StageChanges, Now: s.cfg.Now,
		Tokenize: g.prompt.tokens, Detokenize: g.prompt.given,
		Warn: func(e *pipeline.Error) {
			s.cfg.Logger.Warn("a plugin failed", "request_id", q.c.id, "plugin", e.Plugin+"@"+e.Version, "code", e.Code, "step", e.Step, "error", e.Message)
			q.warn = append(q.warn, "plugin "+e.Plugin+"@"+e.Version+" failed ("+e.Code+")")
		},
	}
	for _, c := range list {
		o.Plugins = append(o.Plugins, s.pluginSpec(ctx, q, r, c))
	}
	q.plug = g
	var err error
	if g.pipe, err = pipeline.New(o); err != nil { // it has the report of who failed
		if ctx.Err() != nil {
			return errCancelled
		}
		return userError(err)
	}
	if err := s.showPrompt(q); err != nil {
		return err
	}
	s.dropLeft(q)
	q.max = min(q.max, q.auxiliaryRoom(s.info.Context))
	g.pipe.Limit(q.max)
	g.pipe.Begin(q.textual())
	q.flow.hold, q.flow.grows = g.pipe.Holdback(), g.pipe.TakesText()
	if g.pipe.RefusesDrafts() && q.ahead.mode != SpeculateOff {
		q.ahead.mode = SpeculateOff
		q.warn = append(q.warn, "a plugin wants no tokens to be guessed ahead")
	}
	if q.width() > 1 && q.ahead.mode != SpeculateOff {
		q.ahead.mode = SpeculateOff // each guess would be run in all of its sequences
		q.warn = append(q.warn, "a plugin has another sequence beside the text: no tokens are guessed ahead")
	}
	s.openShadows(ctx, q, r)
	q.sampling.Plugins = g.pipe
	if r.StageChanges {
		q.sampling.Watcher = g.pipe
	}
	if len(g.shadows) > 0 {
		q.sampling.Plugins = shadowed{g.pipe}
	}
	if q.chain, err = sampling.New(q.sampling); err != nil {
		return err
	}
	return nil
}

// showPrompt lets the plugins see and rewrite the prompt. Media stay what they are in a text
// that has their markers; tokens that a plugin gives have no place for them.
func (s *scheduler) showPrompt(q *sequence) error {
	p, was := q.plug.prompt, q.textual()
	prompt, err := q.plug.pipe.Prompt(p.text, was)
	if err != nil {
		var e *pipeline.Error
		if errors.As(err, &e) && q.plug.refused[e.Plugin] {
			return pluginRefusal(e)
		}
		return userError(err)
	}
	switch {
	case q.media != nil && p.forced:
		return Errorf(CodeRefused, "prompt", "a plugin gave the prompt as tokens, which have no place for media; it must give a text with their markers")
	case p.spread != nil:
		q.media = p.spread
		return s.reprompt(q, p.ids)
	case slices.Equal(prompt, was):
		return nil
	}
	return s.reprompt(q, prompt)
}

// textual is the prompt as plugins see it.
func (q *sequence) textual() []int32 {
	if q.media == nil {
		return q.prompt
	}
	return textual(q.prompt)
}

// newPrompt is the prompt of a sequence as its plugins see it.
func (s *scheduler) newPrompt(q *sequence, r *Request) *promptText {
	p := newPromptText(r, q.textual(), s.vocab, s.cfg.PlainSpecial)
	if was := q.prompt; q.media != nil {
		p.media = func(text string) ([]int32, *spread, *Error) {
			return q.media.rewrite(text, r, was, s.vocab, s.cfg.PlainSpecial, s.eyes.info)
		}
	}
	return p
}

// pluginSpec is a plugin as one sequence runs it. Whoever waits to open it, now or to start
// it again, does so until ctx ends.
func (s *scheduler) pluginSpec(ctx context.Context, q *sequence, r *Request, c chosen) pipeline.Spec {
	m := c.plugin.Manifest()
	spec := pipeline.Spec{Manifest: m, Hash: c.plugin.Hash(), OnError: c.policy, Required: c.required}
	if !m.Can(abi.CapAuxSeq) {
		spec.Open = func(spent pipeline.Spent) (pipeline.Instance, error) {
			return c.plugin.Open(ctx, s.pluginOpen(q, r, c, spent))
		}
		return spec
	}
	own := &owned{s: s, q: q, name: m.Name}
	spec.Left = own.leave
	spec.Open = func(spent pipeline.Spent) (pipeline.Instance, error) {
		own.instance()
		o := s.pluginOpen(q, r, c, spent)
		o.Sequences = own
		return c.plugin.Open(ctx, o)
	}
	return spec
}

// reprompt gives a sequence the prompt that plugins made.
func (s *scheduler) reprompt(q *sequence, prompt []int32) error {
	if len(prompt) == 0 {
		return Errorf(CodeEmptyPrompt, "prompt", "a plugin left nothing of the prompt")
	}
	room, fault := roomAfter(prompt, s.info.Context)
	if fault != nil {
		return fault
	}
	q.prompt = slices.Clone(prompt)
	q.tokens = q.prompt
	q.max = min(q.max, room)
	return nil
}

// pluginOpen is what one plugin hears of a sequence.
func (s *scheduler) pluginOpen(q *sequence, r *Request, c chosen, spent pipeline.Spent) PluginOpen {
	p, g := &q.sampling, q.plug
	name := c.plugin.Manifest().Name
	return PluginOpen{
		Request: q.c.id, Config: c.config, Seed: uint64(p.Seed), Vocab: s.vocab, Model: s.info.Name, Hash: s.info.Hash, Size: s.info.Vocab, Prompt: g.prompt.text,
		Context: min(len(q.prompt)+q.max, s.info.Context), Temperature: p.Temperature, TopP: p.TopP, MinP: p.MinP, TopK: p.TopK,
		PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
		MaxTokens: q.max, PromptTokens: len(q.prompt), Stream: r.Stream,
		Text:  func(n int) []byte { return g.text(&q.flow, n) },
		Clock: func() int64 { return s.cfg.Now().Sub(q.arrived).Milliseconds() },
		Meta:  func(key string, value []byte) { g.keepMeta(name+"."+key, value) },
		Spent: spent,
	}
}

// keepMeta takes a value for the request's record.
func (g *plugged) keepMeta(key string, value []byte) {
	g.metaMu.Lock()
	defer g.metaMu.Unlock()
	if g.meta == nil {
		g.meta = make(map[string]string)
	}
	g.meta[key] = string(value)
}

// text returns at least the last n bytes of the text so far, with that of the token that
// is being accepted, or all of it.
func (g *plugged) text(f *textFlow, n int) []byte {
	if g.pipe != nil {
		// A plugin that reads the text again is told of it as far as it has heard.
		if told, ok := g.pipe.Replayed(); ok && told <= len(f.ends) {
			return f.text[:f.ends[told-1]]
		}
	}
	if len(g.pending) == 0 {
		return f.text
	}
	from := max(len(f.text)+len(g.pending)-n, 0)
	g.tail = append(g.tail[:0], f.text[min(from, len(f.text)):]...)
	g.tail = append(g.tail, g.pending...)
	return g.tail
}

// endPlugins ends what is open of a sequence's plugins and notes what they did.
func (s *scheduler) endPlugins(q *sequence) {
	g := q.plug
	if g.pipe != nil {
		err := guard("end plugins", func() error {
			defer s.endShadows(q)
			defer g.pipe.Close()
			if g.began {
				g.pipe.End(stopReason(q))
			}
			return nil
		})
		if err != nil {
			s.cfg.Logger.Error("plugins did not end cleanly", "request_id", q.c.id, "error", err)
		}
		tokens := len(q.flow.tokens)
		for _, r := range g.pipe.Reports() {
			report := reportOf(&r, tokens)
			q.record.Plugins = append(q.record.Plugins, report)
			if c := g.choice(report.Name); report.Reason == "" && !g.refused[report.Name] && !c.inline {
				report.Settings = c.settings
				s.cfg.Plugins.Ended(&report)
			}
		}
	}
	release(g.chosen)
	g.metaMu.Lock()
	q.record.PluginMeta = g.meta
	g.metaMu.Unlock()
}

// choice is the choice of a plugin. What becomes of one that the request brought itself is
// its own affair.
func (g *plugged) choice(name string) chosen {
	return g.chosen[slices.IndexFunc(g.chosen, func(c chosen) bool { return c.plugin.Manifest().Name == name })]
}

// reportOf makes a report of a pipeline's one.
func reportOf(r *pipeline.Report, tokens int) PluginReport {
	n := float64(max(tokens, 1))
	out := PluginReport{
		Name: r.Name, Version: r.Version, Hash: r.Hash, Outcome: string(r.Outcome), Calls: r.Calls,
		Tokens: tokens, MicrosPer: micros(r.Time) / n, FuelPer: float64(r.Fuel) / n,
		OnceUS: micros(r.OnceTime), OnceFuel: r.OnceFuel,
		Changed: r.Changed, Rewritten: r.Rewritten, Rewinds: r.Rewinds, Reason: r.Reason,
	}
	if r.Error != nil {
		out.Error = r.Error.Code + ": " + r.Error.Message
	}
	return out
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// forced puts tokens that plugins force behind a sequence's last one, in at most room
// rows, and returns how many rows they take: they come whatever their heads say.
func (s *scheduler) forced(q *sequence, room int) int {
	g := q.plug
	if g == nil || len(g.next) == 0 {
		return 0
	}
	width := q.width()
	if width > 1 && g.unsettled {
		return 0 // at each of them the rows of auxiliary sequences may be asked for
	}
	n := min(len(g.next), room/width, q.max-len(q.flow.tokens)-1)
	if n <= 0 {
		return 0
	}
	if err := s.mark(q); err != nil {
		return 0 // they come one by one
	}
	q.ahead.run = append(q.ahead.run, g.next[:n]...)
	q.ahead.forced = n
	return n * width
}

// busy tells whether a sequence is its goroutine's.
func (q *sequence) busy() bool { return q.plug != nil && q.plug.at }
