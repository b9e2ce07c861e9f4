package pipeline

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"ganglion/plugins/abi"
)

// ErrRefused says that a plugin does not want the request.
var ErrRefused = errors.New("the request was refused by a plugin")

// Prompt lets the plugins look at a prompt and rewrite it, before Begin. It returns the
// prompt's tokens. An error is an *Error, or wraps ErrRefused.
func (p *Pipeline) Prompt(text string, tokens []int32) ([]int32, error) {
	p.tokens, p.prompt = tokens, len(tokens)
	p.asked = text
	p.unread = nil
	for _, g := range p.plugins {
		if g.in == nil || !g.in.Has(abi.HookPrompt) {
			continue
		}
		if e := p.try(g, (*Pipeline).promptOne); e != nil {
			return nil, e
		}
		if p.unread != nil {
			return nil, p.unread
		}
		if p.stop != 0 {
			p.stop = 0
			return nil, fmt.Errorf("%w: %s@%s", ErrRefused, g.spec.Manifest.Name, g.spec.Manifest.Version)
		}
	}
	return p.tokens, nil
}

// seen is what a plugin's prompt hook saw.
type seen struct {
	text   string
	tokens []int32
}

// showPrompt calls the prompt hook of one plugin.
func (p *Pipeline) showPrompt(g *plugin, text string, flags uint32) (abi.Action, *Error) {
	f := p.fill(g, abi.HookPrompt, 0, flags)
	f.put(abi.OffInN, 0)
	if g.spec.Manifest.View.Text {
		if len(text) > f.l.InCap {
			return 0, g.fault(-1, codeQuota, "the prompt has %d bytes, the plugin's buffer %d", len(text), f.l.InCap)
		}
		copy(f.part(f.l.In, len(text)), text)
		f.put(abi.OffInN, uint32(len(text)))
	}
	return p.call(g, abi.HookPrompt)
}

// promptAgain shows a new instance the prompt that the one before it saw. What it wants
// of it was done then.
func (p *Pipeline) promptAgain(g *plugin) *Error {
	if g.seen == nil {
		return nil
	}
	tokens, prompt := p.tokens, p.prompt
	p.tokens, p.prompt = g.seen.tokens, len(g.seen.tokens)
	_, e := p.showPrompt(g, g.seen.text, abi.FlagReplay)
	p.tokens, p.prompt = tokens, prompt
	g.hist.forget()
	return e
}

// promptOne lets one plugin look at the prompt.
func (p *Pipeline) promptOne(g *plugin) *Error {
	saw := &seen{p.asked, p.tokens}
	actions, e := p.showPrompt(g, p.asked, 0)
	if e != nil {
		e.Step = -1 // no token is being decided, and no restart helps
		return e
	}
	f := g.frame()
	switch {
	case actions&abi.Text != 0 && actions&abi.Force != 0:
		return g.fault(-1, codeAction, "TEXT and FORCE together")
	case actions&abi.Text != 0:
		b, ok := f.text()
		if !ok || !utf8.Valid(b) {
			return g.fault(-1, codeAction, "TEXT that is not UTF-8 or too long")
		}
		ids, err := p.o.Tokenize(string(b))
		if err != nil {
			p.unread = fmt.Errorf("pipeline: the prompt that %s@%s made: %w", g.spec.Manifest.Name, g.spec.Manifest.Version, err)
			return nil
		}
		p.asked, p.tokens = string(b), ids
		g.report.Rewritten++
	case actions&abi.Force != 0:
		ids, ok := f.tokens(nil, p.o.Vocab)
		if !ok || len(ids) == 0 {
			return g.fault(-1, codeAction, "FORCE with tokens that are none")
		}
		p.tokens = ids
		if p.o.Detokenize != nil {
			p.asked = p.o.Detokenize(ids)
		}
		g.report.Rewritten++
	}
	p.prompt = len(p.tokens)
	g.seen = saw
	if actions&abi.Stop != 0 {
		return p.ahead(g, f, abi.Stop)
	}
	return nil
}
