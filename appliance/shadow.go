package appliance

import (
	"ganglion/plugins/pipeline"
	"ganglion/plugins/sampling"
)

// shadow is a plugin that watches a sequence: it sees what the request's own plugins would
// see in its place and chooses each token as if it were the only one, and its choices are
// counted and not used. It has its own pipeline, chain and scratch, so nothing of it
// reaches the text; when it fails, the text goes on without it.
type shadow struct {
	chosen  []chosen // one
	pipe    *pipeline.Pipeline
	chain   *sampling.Chain
	scratch *sampling.Scratch
	other   int    // tokens that it would have chosen otherwise
	gone    string // why it no longer watches; "": it does
}

// Outcomes of shadows, in the place of a pipeline's.
const (
	outcomeShadow      = "shadow"
	outcomeShadowEnded = "shadow ended"
)

// shadowed is a sequence's own plugins where shadows watch: they need the whole row.
type shadowed struct{ *pipeline.Pipeline }

// Needs implements sampling.Plugins.
func (shadowed) Needs(int) sampling.Needs { return sampling.Needs{View: sampling.Row} }

// openShadows opens the plugins that watch a sequence. One that cannot be had is left out.
func (s *scheduler) openShadows(q *sequence, r *Request) {
	for _, c := range s.cfg.ShadowPlugins {
		sh, err := s.openShadow(q, r, c)
		if err != nil {
			s.cfg.Logger.Warn("a shadow plugin was left out", "request_id", q.c.id, "plugin", c.Name, "error", err)
			continue
		}
		q.plug.shadows = append(q.plug.shadows, sh)
	}
}

func (s *scheduler) openShadow(q *sequence, r *Request, c PluginChoice) (*shadow, error) {
	list, err := s.addPlugin(nil, c, false)
	if err != nil {
		release(list)
		return nil, err
	}
	sh := &shadow{chosen: list, scratch: s.scratches.Get().(*sampling.Scratch)}
	one := list[0]
	sh.pipe, err = pipeline.New(pipeline.Options{
		Plugins: []pipeline.Spec{{
			Manifest: one.plugin.Manifest(), Hash: one.plugin.Hash(), OnError: pipeline.Fail,
			Open: func() (pipeline.Instance, error) { return one.plugin.Open(s.pluginOpen(q, r, q.plug, one)) },
		}},
		Vocab: s.info.Vocab, Seed: uint64(q.sampling.Seed), Temperature: q.sampling.Temperature, Max: q.max, Now: s.cfg.Now,
		Tokenize: func(string) []int32 { return q.prompt },
	})
	if err == nil {
		// What it makes of the prompt is not looked at.
		_, err = sh.pipe.Prompt(r.Prompt, q.prompt)
	}
	if err == nil {
		sh.pipe.Begin(q.prompt)
		p := q.sampling
		p.Plugins = sh.pipe
		sh.chain, err = sampling.New(p)
	}
	if err != nil {
		sh.close(s)
		return nil, err
	}
	return sh, nil
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
		sh.other++
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
			if r.Outcome != pipeline.OutcomeIdle {
				report.Outcome = outcomeShadow
			}
			if sh.gone != "" {
				report.Outcome, report.Error = outcomeShadowEnded, sh.gone
			}
			report.Changed = sh.other
			q.record.Plugins = append(q.record.Plugins, report)
		}
		sh.close(s)
	}
	q.plug.shadows = nil
}
