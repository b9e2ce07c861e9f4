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
	for _, g := range p.plugins {
		if g.in == nil || !g.in.Has(abi.HookPrompt) {
			continue
		}
		if e := p.try(g, (*Pipeline).promptOne); e != nil {
			return nil, e
		}
		if p.stop != 0 {
			p.stop = 0
			return nil, fmt.Errorf("%w: %s@%s", ErrRefused, g.spec.Manifest.Name, g.spec.Manifest.Version)
		}
	}
	return p.tokens, nil
}

// promptOne lets one plugin look at the prompt.
func (p *Pipeline) promptOne(g *plugin) *Error {
	f := p.fill(g, abi.HookPrompt, 0, 0)
	f.put(abi.OffInN, 0)
	if g.spec.Manifest.View.Text {
		if len(p.asked) > f.l.InCap {
			return g.fault(-1, codeQuota, "the prompt has %d bytes, the plugin's buffer %d", len(p.asked), f.l.InCap)
		}
		copy(f.part(f.l.In, len(p.asked)), p.asked)
		f.put(abi.OffInN, uint32(len(p.asked)))
	}
	actions, e := p.call(g, abi.HookPrompt)
	if e != nil {
		return e
	}
	f = g.frame()
	switch {
	case actions&abi.Text != 0 && actions&abi.Force != 0:
		return g.fault(-1, codeAction, "TEXT and FORCE together")
	case actions&abi.Text != 0:
		b, ok := f.text()
		if !ok || !utf8.Valid(b) {
			return g.fault(-1, codeAction, "TEXT that is not UTF-8 or too long")
		}
		p.asked = string(b)
		p.tokens = p.o.Tokenize(p.asked)
		g.report.Rewritten++
	case actions&abi.Force != 0:
		ids, ok := f.tokens(nil, p.o.Vocab)
		if !ok || len(ids) == 0 {
			return g.fault(-1, codeAction, "FORCE with tokens that are none")
		}
		p.tokens = ids
		g.report.Rewritten++
	}
	p.prompt = len(p.tokens)
	if actions&abi.Stop != 0 {
		return p.ahead(g, f, abi.Stop)
	}
	return nil
}
