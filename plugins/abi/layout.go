package abi

// Layout is where the buffers of a frame are, in bytes from its start, and what they
// hold. A buffer that the plugin does not have has offset and room 0.
type Layout struct {
	History, HistoryCap              int // tokens
	CandIDs, CandLogits, CandCap     int
	GatherIDs, GatherLogits, GatherN int
	Full, Mask                       int
	Edits, EditCap                   int
	Out, OutCap                      int // bytes
	In, InCap                        int // bytes
	Size                             int // of header and buffers
}

// Extent is what a request adds to a manifest to lay a frame out.
type Extent struct {
	Vocab       int
	Tokens      int // that the sequence may have, the prompt included
	PromptBytes int // of its text
	Gather      int // gathered tokens
}

// acceptAtOnce is the most tokens that an accept hook is called with.
const acceptAtOnce = MaxForced + MaxHoldback

// textFactor is how many times its size a text may grow to.
const textFactor = 4

// Lay lays a frame out for a plugin that has these hooks.
func (m *Manifest) Lay(hooks HookSet, e Extent) *Layout {
	l := &Layout{Size: HeaderBytes}
	at := func(bytes int) int {
		if bytes == 0 {
			return 0
		}
		off := l.Size
		l.Size += (bytes + FrameAlign - 1) / FrameAlign * FrameAlign
		return off
	}
	v := &m.View
	switch v.History.Kind {
	case HistoryGenerated, HistoryAll:
		l.HistoryCap = max(e.Tokens, 1)
	case HistoryLast:
		l.HistoryCap = v.History.N
	}
	l.History = at(4 * l.HistoryCap)
	l.CandCap = min(v.N, e.Vocab)
	l.CandIDs, l.CandLogits = at(4*l.CandCap), at(4*l.CandCap)
	l.GatherN = e.Gather
	l.GatherIDs, l.GatherLogits = at(4*l.GatherN), at(4*l.GatherN)
	if v.Logits == LogitsFull {
		l.Full = at(4 * e.Vocab)
	}
	if v.Mask {
		l.Mask = at((e.Vocab + 31) / 32 * 4)
	}
	l.EditCap = v.Edits
	l.Edits = at(EditBytes * l.EditCap)
	if hooks.Has(HookAccept) {
		l.InCap = 4 * acceptAtOnce
	}
	if hooks.Has(HookText) {
		l.InCap, l.OutCap = max(l.InCap, MaxTextBytes), textFactor*MaxTextBytes
	}
	if hooks.Has(HookPrompt) {
		if v.Text {
			l.InCap = max(l.InCap, e.PromptBytes)
		}
		l.OutCap = max(l.OutCap, textFactor*e.PromptBytes, 4*e.Tokens, 4<<10)
	}
	if hooks.Has(HookPlan) || hooks.Has(HookAccept) {
		l.OutCap = max(l.OutCap, 4*MaxForced)
	}
	l.In, l.Out = at(l.InCap), at(l.OutCap)
	return l
}
