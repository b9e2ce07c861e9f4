package pipeline

import (
	"encoding/binary"
	"unicode/utf8"

	"ganglion/plugins/abi"
)

// Verdict is what plugins want after a token or a text.
type Verdict struct {
	Rewind int            // tokens to take back; Rewind must be called then
	Stop   abi.StopReason // 0: the text goes on
}

// Accept tells the plugins of a token that joined the text. All of them hear of it,
// whatever one of them wants.
func (p *Pipeline) Accept(id int32) (v Verdict, err error) {
	p.stop, p.last = 0, false
	p.tokens = append(p.tokens, id)
	p.sampled++
	last := len(p.tokens) - 1
	for _, g := range p.plugins {
		if g.in == nil || !g.in.Has(abi.HookAccept) {
			continue
		}
		actions, e := p.acceptOne(g, last-p.prompt, p.tokens[last:], 0)
		if e == nil {
			e = p.verdict(g, actions, &v)
		}
		if e != nil {
			if e = p.failed(g, e); e != nil {
				return v, e
			}
		}
	}
	if v.Stop == 0 {
		v.Stop = p.stop
	}
	p.settle()
	return v, nil
}

// acceptOne calls the accept hook of one plugin for tokens of which the first is
// generated token step.
func (p *Pipeline) acceptOne(g *plugin, step int, ids []int32, flags uint32) (abi.Action, *Error) {
	f := p.fill(g, abi.HookAccept, step, flags)
	b := f.part(f.l.In, 4*len(ids))
	for i, id := range ids {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(id))
	}
	f.put(abi.OffInN, uint32(len(ids)))
	f.put(abi.OffToken, uint32(ids[len(ids)-1]))
	return p.call(g, abi.HookAccept)
}

// verdict notes what a plugin wants after a token or a text.
func (p *Pipeline) verdict(g *plugin, actions abi.Action, v *Verdict) *Error {
	f := g.frame()
	if actions&abi.Backtrack == 0 || p.last {
		return p.ahead(g, f, actions)
	}
	if v.Rewind > 0 {
		return nil // another one comes first, and this one is put back
	}
	n := int(f.get(abi.OffBacktrack))
	if e := p.mayRewind(g, n); e != nil {
		return e
	}
	// What it wants besides is meant for where the text goes back to.
	forced, taken, stop := p.forced, p.taken, p.stop
	p.forced, p.taken, p.stop = p.instead[:0], 0, 0
	e := p.ahead(g, f, actions)
	p.instead, p.stopping = p.forced, p.stop
	p.forced, p.taken, p.stop = forced, taken, stop
	if e == nil {
		v.Rewind, p.asker = n, g
	}
	return e
}

// mayRewind checks that a plugin may take n tokens back.
func (p *Pipeline) mayRewind(g *plugin, n int) *Error {
	step := p.now()
	most := min(g.spec.Manifest.View.Holdback, step)
	if n < 1 || n > most {
		return g.fault(step, codeAction, "BACKTRACK of %d tokens, %d may be taken back", n, most)
	}
	if p.rewinds == nil {
		p.rewinds = make(map[int]int)
	}
	at := len(p.tokens) - n
	if p.rewinds[at]++; p.rewinds[at] > maxAtPosition {
		return g.fault(step, codeLivelock, "the text went back to token %d more than %d times", at-p.prompt, maxAtPosition)
	}
	if p.sampled > sampledFactor*p.o.Max {
		return g.fault(step, codeLivelock, "%d tokens were made for a text of at most %d", p.sampled, p.o.Max)
	}
	return nil
}

// TakesText tells whether plugins want to see text before it is sent.
func (p *Pipeline) TakesText() bool {
	for _, g := range p.plugins {
		if g.in != nil && g.in.Has(abi.HookText) {
			return true
		}
	}
	return false
}

// maxPiece is the most text that a hook gets at once.
const maxPiece = abi.MaxTextBytes

// Text shows the plugins text that the latest token completed, whole characters, and
// returns what stands for it. Last tells that the text ends with it. The slice is valid
// until the next call.
func (p *Pipeline) Text(text []byte, last bool) (out []byte, v Verdict, err error) {
	p.stop = 0
	p.most = max(textFactor*len(text), textLeast)
	for _, g := range p.plugins {
		if g.in == nil || !g.in.Has(abi.HookText) || len(text) == 0 && !last {
			continue
		}
		p.in, p.last = append(p.in[:0], text...), last
		p.given = p.given[:0]
		p.v = v
		if e := p.try(g, (*Pipeline).textOne); e != nil {
			return nil, v, e
		}
		v = p.v
		if g.in == nil { // it left: the text stays as it was
			p.given = append(p.given[:0], p.in...)
		}
		p.given, p.text = p.text, p.given
		text = p.text
	}
	if v.Stop == 0 {
		v.Stop = p.stop
	}
	p.settle()
	return text, v, nil
}

// textOne calls the text hook of one plugin, piece by piece.
func (p *Pipeline) textOne(g *plugin) *Error {
	p.given = p.given[:0]
	rest := p.in
	for {
		n := pieceEnd(rest, min(maxPiece, g.in.Layout().InCap))
		var flags uint32
		if p.last && n == len(rest) {
			flags = abi.FlagLast
		}
		if e := p.piece(g, rest[:n], flags); e != nil {
			return e
		}
		if rest = rest[n:]; len(rest) == 0 {
			return nil
		}
	}
}

// pieceEnd returns how much of a text fits, in whole characters.
func pieceEnd(text []byte, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return most
}

// piece calls the text hook once and appends what it makes of the text to p.given.
func (p *Pipeline) piece(g *plugin, text []byte, flags uint32) *Error {
	step := max(p.now()-1, 0)
	f := p.fill(g, abi.HookText, step, 0)
	f.put(abi.OffFlags, f.get(abi.OffFlags)&^abi.FlagLast|flags)
	copy(f.part(f.l.In, len(text)), text)
	f.put(abi.OffInN, uint32(len(text)))
	actions, e := p.call(g, abi.HookText)
	if e != nil {
		return e
	}
	given := text
	if actions&abi.Text != 0 {
		b, ok := g.frame().text()
		switch {
		case !ok:
			return g.fault(step, codeAction, "TEXT of more bytes than there is room for")
		case len(p.given)+len(b) > p.most:
			return g.fault(step, codeQuota, "TEXT of %d bytes, at most %d", len(p.given)+len(b), p.most)
		case !utf8.Valid(b):
			return g.fault(step, codeAction, "TEXT that is not UTF-8")
		}
		given = b
	}
	if string(given) != string(text) {
		g.report.Rewritten++
		p.changed(g, ChangeText, NoToken)
	}
	p.given = append(p.given, given...)
	return p.verdict(g, actions, &p.v)
}

// End tells the plugins that the text is over, those too that have no hook for it: what
// they want to be kept is kept then. A failure here is only reported.
func (p *Pipeline) End(reason abi.StopReason) {
	for _, g := range p.plugins {
		if g.in == nil {
			continue
		}
		calls := g.report.Calls
		f := p.fill(g, abi.HookEnd, p.now(), abi.FlagLast)
		f.put(abi.OffStopReason, uint32(reason))
		_, e := p.call(g, abi.HookEnd)
		if !g.in.Has(abi.HookEnd) {
			g.report.Calls = calls
		}
		if e != nil {
			g.report.Outcome, g.report.Error = OutcomeSkipped, e
			p.warn(e)
		}
	}
}
