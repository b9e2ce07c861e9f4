package appliance

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"ganglion/gpu/engine"
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
	chosen  []chosen
	shadows []*shadow       // plugins that only watch
	jobs    chan pluggedJob // at most one is under way
	done    chan struct{}   // holds one signal when a job with heads is done

	heads []engine.Head // of the job, with copies of what they hold
	used  int           // of these
	fault error         // of planning, to be told at the next token
	next  []int32       // tokens that are forced, as known after the job

	// The scheduler's own.
	at   bool // a job with heads is under way: the sequence is the goroutine's
	late bool // and others no longer wait for it

	began   bool // the prompt is in place
	pending []byte
	tail    []byte
	metaMu  sync.Mutex
	meta    map[string]string
}

// pluggedJob is work for a sequence's goroutine.
type pluggedJob uint8

const (
	planFirst  pluggedJob = iota // plan the first step
	takeHeads                    // choose tokens from heads, then plan
	endPlugged                   // the sequence is over
)

// openPlugins opens the plugins of a sequence, lets them see its prompt, and starts its
// text. The error is one for the user.
func (s *scheduler) openPlugins(q *sequence, r *Request, list []chosen) error {
	g := &plugged{chosen: list, jobs: make(chan pluggedJob, 1), done: make(chan struct{}, 1)}
	o := pipeline.Options{
		Vocab: s.info.Vocab, Seed: uint64(q.sampling.Seed), Temperature: q.sampling.Temperature, Max: q.max, Now: s.cfg.Now,
		Tokenize: func(text string) []int32 {
			again := *r
			again.Prompt, again.PromptTokens = text, nil
			ids, fault := tokenize(&again, s.vocab, s.cfg.PlainSpecial)
			if fault != nil {
				return nil
			}
			return ids
		},
		Warn: func(e *pipeline.Error) {
			s.cfg.Logger.Warn("a plugin failed", "request_id", q.c.id, "plugin", e.Plugin+"@"+e.Version, "code", e.Code, "step", e.Step, "error", e.Message)
			q.warn = append(q.warn, "plugin "+e.Plugin+"@"+e.Version+" failed ("+e.Code+")")
		},
	}
	for _, c := range list {
		o.Plugins = append(o.Plugins, pipeline.Spec{
			Manifest: c.plugin.Manifest(), Hash: c.plugin.Hash(), OnError: c.policy, Required: c.required,
			Open: func() (pipeline.Instance, error) { return c.plugin.Open(s.pluginOpen(q, r, g, c)) },
		})
	}
	q.plug = g
	var err error
	if g.pipe, err = pipeline.New(o); err != nil {
		return userError(err)
	}
	prompt, err := g.pipe.Prompt(r.Prompt, q.prompt)
	if err != nil {
		return userError(err)
	}
	if !slices.Equal(prompt, q.prompt) {
		if err := s.reprompt(q, prompt); err != nil {
			return err
		}
	}
	g.pipe.Begin(q.prompt)
	q.flow.hold, q.flow.grows = g.pipe.Holdback(), g.pipe.TakesText()
	if g.pipe.RefusesDrafts() && q.ahead.mode != SpeculateOff {
		q.ahead.mode = SpeculateOff
		q.warn = append(q.warn, "a plugin wants no tokens to be guessed ahead")
	}
	s.openShadows(q, r)
	q.sampling.Plugins = g.pipe
	if len(g.shadows) > 0 {
		q.sampling.Plugins = shadowed{g.pipe}
	}
	if q.chain, err = sampling.New(q.sampling); err != nil {
		return err
	}
	return nil
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
func (s *scheduler) pluginOpen(q *sequence, r *Request, g *plugged, c chosen) PluginOpen {
	p := &q.sampling
	name := c.plugin.Manifest().Name
	return PluginOpen{
		Request: q.c.id, Config: c.config, Seed: uint64(p.Seed), Vocab: s.vocab, Model: s.info.Name, Hash: s.info.Hash, Size: s.info.Vocab, Prompt: r.Prompt,
		Context: min(len(q.prompt)+q.max, s.info.Context), Temperature: p.Temperature, TopP: p.TopP, MinP: p.MinP, TopK: p.TopK,
		PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
		MaxTokens: q.max, PromptTokens: len(q.prompt), Stream: r.Stream,
		Text:  func(n int) []byte { return g.text(&q.flow, n) },
		Clock: func() int64 { return s.cfg.Now().Sub(q.arrived).Milliseconds() },
		Meta: func(key string, value []byte) {
			g.metaMu.Lock()
			defer g.metaMu.Unlock()
			if g.meta == nil {
				g.meta = make(map[string]string)
			}
			g.meta[name+"."+key] = string(value)
		},
	}
}

// text returns at least the last n bytes of the text so far, with that of the token that
// is being accepted, or all of it.
func (g *plugged) text(f *textFlow, n int) []byte {
	if len(g.pending) == 0 {
		return f.text
	}
	from := max(len(f.text)+len(g.pending)-n, 0)
	g.tail = append(g.tail[:0], f.text[min(from, len(f.text)):]...)
	g.tail = append(g.tail, g.pending...)
	return g.tail
}

// work is the goroutine of a sequence with plugins, from its slot to its end.
func (s *scheduler) work(q *sequence) {
	defer s.workers.Done()
	g := q.plug
	scratch := s.scratches.Get().(*sampling.Scratch)
	defer s.scratches.Put(scratch)
	for job := range g.jobs {
		switch job {
		case takeHeads:
			g.used = q.readPlugged(g.heads, s.vocab, s.cfg.Now, scratch)
			over := q.over()
			g.done <- struct{}{}
			s.signal()
			if over {
				continue // the scheduler's next job is the end
			}
			fallthrough
		case planFirst:
			g.plan()
		case endPlugged:
			s.leave(q, true)
			s.signal()
			return
		}
	}
}

// plan plans the next step; a failure is told at its token. It is no guard with a
// function, for that would allocate at each token.
func (g *plugged) plan() {
	defer func() {
		if p := recover(); p != nil {
			g.fault = fmt.Errorf("appliance: plan: panic: %v", p)
		}
	}()
	g.fault = g.pipe.Plan()
}

// startWork gives a sequence that has a slot its goroutine.
func (s *scheduler) startWork(q *sequence) {
	s.workers.Add(1)
	q.plug.began = true
	q.plug.jobs <- planFirst
	go s.work(q)
}

// hand gives a sequence's goroutine the heads of a step. They are copied, for they are
// valid until the next step alone.
func (g *plugged) hand(heads []engine.Head) {
	for len(g.heads) < len(heads) {
		g.heads = append(g.heads, engine.Head{})
	}
	g.heads = g.heads[:len(heads)]
	for i := range heads {
		to, from := &g.heads[i], &heads[i]
		ids, logits, row := to.IDs, to.Logits, to.Row
		*to = *from
		to.IDs, to.Logits = append(ids[:0], from.IDs...), append(logits[:0], from.Logits...)
		to.Row = nil
		if from.Row != nil {
			to.Row = append(row[:0], from.Row...)
		}
	}
	g.at = true
	g.jobs <- takeHeads
}

// await waits for the sequences with plugins of a step, all together no longer than the
// wait that is configured.
func (s *scheduler) await() {
	waiting := 0
	for _, q := range s.batch {
		if q.plug != nil && q.plug.at {
			waiting++
		}
	}
	if waiting == 0 {
		return
	}
	if s.timer == nil {
		s.timer = time.NewTimer(s.cfg.PluginWait)
	} else {
		s.timer.Reset(s.cfg.PluginWait)
	}
	defer s.timer.Stop()
	over := false
	for _, q := range s.batch {
		g := q.plug
		if g == nil || !g.at {
			continue
		}
		if !over {
			select {
			case <-g.done:
				s.settle(q)
				continue
			case <-s.timer.C:
				over = true
			}
		}
		g.late = true
		s.reap(q)
	}
}

// reap takes a late sequence back if it is done.
func (s *scheduler) reap(q *sequence) {
	select {
	case <-q.plug.done:
		q.plug.late = false
		s.settle(q)
	default:
	}
}

// settle brings a sequence's slot to where its text is.
func (s *scheduler) settle(q *sequence) {
	q.plug.at = false
	if q.over() {
		return
	}
	if rows := q.fed - (len(q.tokens) - 1); rows > 0 {
		if err := s.takeBack(q, rows); err != nil {
			q.err = err
		}
	}
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
			s.cfg.Plugins.Ended(&report)
		}
	}
	release(g.chosen)
	g.metaMu.Lock()
	q.record.PluginMeta = g.meta
	g.metaMu.Unlock()
}

// reportOf makes a report of a pipeline's one.
func reportOf(r *pipeline.Report, tokens int) PluginReport {
	n := float64(max(tokens, 1))
	out := PluginReport{
		Name: r.Name, Version: r.Version, Hash: r.Hash, Outcome: string(r.Outcome), Calls: r.Calls,
		MicrosPer: float64(r.Time) / float64(time.Microsecond) / n, FuelPer: float64(r.Fuel) / n,
		Changed: r.Changed, Rewritten: r.Rewritten, Rewinds: r.Rewinds,
	}
	if r.Error != nil {
		out.Error = r.Error.Code + ": " + r.Error.Message
	}
	return out
}

// forced puts tokens that plugins force behind a sequence's last one, at most room, and
// returns how many: they come whatever their heads say.
func (s *scheduler) forced(q *sequence, room int) int {
	g := q.plug
	if g == nil || len(g.next) == 0 {
		return 0
	}
	n := min(len(g.next), room, q.max-len(q.flow.tokens)-1)
	if n <= 0 {
		return 0
	}
	if err := s.mark(q); err != nil {
		return 0 // they come one by one
	}
	q.ahead.run = append(q.ahead.run, g.next[:n]...)
	q.ahead.forced = n
	return n
}

// busy tells whether a sequence is its goroutine's.
func (q *sequence) busy() bool { return q.plug != nil && q.plug.at }
