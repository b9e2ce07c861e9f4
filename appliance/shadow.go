package appliance

import (
	"context"
	"errors"
	"fmt"

	"ganglion/gpu/engine"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/sampling"
)

// shadow is a plugin that watches a sequence: it sees what the request's own plugins would
// see in its place and chooses each token as if it were the only one, and its choices are
// logged and not used. It has its own pipeline, chain and scratch, so nothing of it
// reaches the text; when it fails, the text goes on without it. It sees a step after the
// scheduler has its token, so its time is not the stream's. What it stores is not kept, the
// answer's header does not name it, and what it says for the record stands there under
// "shadow:". It gets no auxiliary sequences, for these are slots that requests wait for.
type shadow struct {
	chosen  []chosen // one
	pipe    *pipeline.Pipeline
	chain   *sampling.Chain
	scratch *sampling.Scratch
	begins  int            // tokens of the prompt
	other   []ShadowChoice // tokens that it would have chosen otherwise, without their text
	gone    string         // why it no longer watches; "": it does
	sees    int            // bytes of the text that there were at its step
}

// watched are the tokens of a job as shadows get to know them.
type watched struct {
	steps []watchedStep
	raw   []byte        // bytes of all tokens
	heads []engine.Head // of the job, while the sequence gets others
	head  int           // of the token that is being chosen
	back  bool          // the text went back behind these
}

// watchedStep is one token that was chosen.
type watchedStep struct {
	head, position int
	id             int32
	text           int // bytes of the text before it
	joined         bool
	from, to       int // its bytes in raw
}

// note adds a token.
func (w *watched) note(id int32, position, text int) {
	w.steps = append(w.steps, watchedStep{head: w.head, position: position, id: id, text: text, from: len(w.raw), to: len(w.raw)})
}

// joined says that the token joined the text, with the characters that it completed.
func (w *watched) joined(raw []byte) {
	last := &w.steps[len(w.steps)-1]
	w.raw = append(w.raw, raw...)
	last.joined, last.to = true, len(w.raw)
}

// take keeps the heads of a job for the shadows.
func (w *watched) take(g *plugged) {
	if len(g.shadows) > 0 {
		w.heads, g.heads = g.heads, w.heads
	}
}

// show lets the shadows see the tokens.
func (w *watched) show(g *plugged) {
	for i := range w.steps {
		st := &w.steps[i]
		in := inputOf(&w.heads[st.head])
		for _, sh := range g.shadows {
			sh.see(&in, st, w.raw[st.from:st.to])
		}
	}
	for _, sh := range g.shadows {
		if w.back && sh.gone == "" {
			sh.gone = "the text went back"
		}
	}
	w.steps, w.raw = w.steps[:0], w.raw[:0]
}

// see is one token of the text.
func (sh *shadow) see(in *sampling.Input, st *watchedStep, raw []byte) {
	defer func() {
		if p := recover(); p != nil {
			sh.gone = fmt.Sprintf("panic: %v", p)
		}
	}()
	sh.sees = st.text
	sh.look(in, st.id, st.position)
	if st.joined {
		sh.sees += len(raw)
		sh.accept(st.id, raw)
	}
}

// Outcomes of shadows, in the place of a pipeline's.
const (
	outcomeShadow      = "shadow"
	outcomeShadowEnded = "shadow ended"
)

// shadowMeta begins the keys of what shadows left for the record.
const shadowMeta = "shadow:"

// shadowed is a sequence's own plugins where shadows watch: they need the whole row.
type shadowed struct{ *pipeline.Pipeline }

// Needs implements sampling.Plugins.
func (shadowed) Needs(int) sampling.Needs { return sampling.Needs{View: sampling.Row} }

// openShadows opens the plugins that watch a sequence. One that cannot be had is left out,
// and the record says why.
func (s *scheduler) openShadows(ctx context.Context, q *sequence, r *Request) {
	for _, c := range s.cfg.ShadowPlugins {
		report := PluginReport{Name: c.Name, Outcome: outcomeShadowEnded, Shadow: true}
		sh, err := s.openShadow(ctx, q, r, c, &report)
		if err != nil && ctx.Err() != nil {
			break // nobody waits for the text any more
		}
		if err != nil {
			s.cfg.Logger.Warn("a shadow plugin was left out", "request_id", q.c.id, "plugin", c.Name, "error", err)
			report.Error = err.Error()
			q.record.Plugins = append(q.record.Plugins, report)
			continue
		}
		q.plug.shadows = append(q.plug.shadows, sh)
	}
}

// openShadow opens one of them. In the report it notes which file that is, as soon as it
// is known.
func (s *scheduler) openShadow(ctx context.Context, q *sequence, r *Request, c PluginChoice, report *PluginReport) (*shadow, error) {
	list, err := s.addPlugin(ctx, nil, c, false)
	if len(list) > 0 {
		report.Version, report.Hash = list[0].plugin.Manifest().Version, list[0].plugin.Hash()
	}
	if err != nil {
		release(list)
		return nil, err
	}
	if list[0].plugin.Manifest().Can(abi.CapAuxSeq) {
		release(list)
		return nil, errors.New("plugins that only watch get no auxiliary sequences")
	}
	sh := &shadow{chosen: list, scratch: s.scratches.Get().(*sampling.Scratch)}
	one := list[0]
	sh.pipe, err = pipeline.New(pipeline.Options{
		Plugins: []pipeline.Spec{{
			Manifest: one.plugin.Manifest(), Hash: one.plugin.Hash(), OnError: pipeline.Fail,
			Open: func(spent pipeline.Spent) (pipeline.Instance, error) {
				return one.plugin.Open(ctx, s.shadowOpen(q, r, sh, one, spent))
			},
		}},
		Vocab: s.info.Vocab, Seed: uint64(q.sampling.Seed), Temperature: q.sampling.Temperature,
		Single: q.sampling.CutsToOne(), Suppressed: q.sampling.Suppressed, Max: q.max, Now: s.cfg.Now,
		Tokenize: func(string) ([]int32, error) { return q.textual(), nil },
	})
	if err == nil {
		// What it makes of the prompt is not looked at.
		_, err = sh.pipe.Prompt(q.plug.prompt.text, q.textual())
	}
	if err == nil {
		sh.pipe.Begin(q.textual())
		sh.begins = len(q.tokens)
		p := q.sampling
		p.Plugins, p.Watcher = sh.pipe, nil
		sh.chain, err = sampling.New(p)
	}
	if err != nil {
		sh.close(s)
		return nil, err
	}
	return sh, nil
}

// shadowOpen is what a shadow hears of a sequence.
func (s *scheduler) shadowOpen(q *sequence, r *Request, sh *shadow, c chosen, spent pipeline.Spent) PluginOpen {
	o := s.pluginOpen(q, r, c, spent)
	o.Shadow = true
	o.Text = func(int) []byte { return q.flow.text[:min(sh.sees, len(q.flow.text))] }
	name := c.plugin.Manifest().Name
	o.Meta = func(key string, value []byte) { q.plug.keepMeta(shadowMeta+name+"."+key, value) }
	return o
}

// look lets a shadow choose at a step for which the text got a token.
func (sh *shadow) look(in *sampling.Input, got int32, position int) {
	if sh.gone != "" {
		return
	}
	if err := sh.pipe.Plan(); err != nil {
		sh.gone = err.Error()
		return
	}
	id, ok := sh.pipe.NextForced()
	if !ok {
		c, err := sh.chain.Choose(in, position, sh.scratch)
		if err != nil {
			sh.gone = err.Error()
			return
		}
		id = c.ID
	}
	if id != got {
		sh.other = append(sh.other, ShadowChoice{At: position - sh.begins, ID: id})
	}
}

// accept tells a shadow of the token that came. What it wants then is not done: a shadow
// that would take tokens back or end the text has no text of its own to go on with.
func (sh *shadow) accept(id int32, raw []byte) {
	if sh.gone != "" {
		return
	}
	sh.chain.Accept(id)
	v, err := sh.pipe.Accept(id)
	if err == nil && v.Rewind == 0 && v.Stop == 0 && len(raw) > 0 {
		_, v, err = sh.pipe.Text(raw, false)
	}
	switch {
	case err != nil:
		sh.gone = err.Error()
	case v.Rewind > 0:
		sh.gone = "it would have taken tokens back"
	case v.Stop != 0:
		sh.gone = "it would have ended the text"
	}
}

// close gives everything back.
func (sh *shadow) close(s *scheduler) {
	if sh.pipe != nil {
		sh.pipe.Close()
	}
	s.scratches.Put(sh.scratch)
	release(sh.chosen)
}

// endShadows notes what the shadows would have done.
func (s *scheduler) endShadows(q *sequence) {
	tokens := len(q.flow.tokens)
	for _, sh := range q.plug.shadows {
		sh.pipe.End(stopReason(q))
		for _, r := range sh.pipe.Reports() {
			report := reportOf(&r, tokens)
			report.Shadow = true
			if r.Outcome != pipeline.OutcomeIdle {
				report.Outcome = outcomeShadow
			}
			if sh.gone != "" {
				report.Outcome, report.Error = outcomeShadowEnded, sh.gone
			}
			report.Changed, report.Choices = len(sh.other), sh.other
			for i := range sh.other {
				sh.other[i].Text = render(s.vocab, sh.other[i].ID)
			}
			q.record.Plugins = append(q.record.Plugins, report)
		}
		sh.close(s)
	}
	q.plug.shadows = nil
}
