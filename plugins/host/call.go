package host

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"ganglion/plugins/abi"
)

// Call calls a hook with the frame as the caller filled it, and returns its actions and
// the fuel that it burnt. Actions that the hook may not return, that lack what they need
// or name numbers out of range are an error; edits, candidates, rows and masks are for the
// caller to check, who reads them. After an error every call returns it again.
//
// HookEnd commits what the plugin stored, and may be called without the hook.
func (i *Instance) Call(h abi.Hook) (actions abi.Action, fuel int64, err error) {
	if i.err != nil {
		return 0, 0, i.err
	}
	if i.g == nil {
		return 0, 0, i.fail(CodeOpen, "it is closed")
	}
	if !i.p.hooks.Has(h) {
		if h == abi.HookEnd {
			return 0, 0, i.commit()
		}
		return 0, 0, nil
	}
	i.step = i.get(abi.OffStep)
	most := i.p.Fuel(h)
	i.put(abi.OffHook, uint32(h))
	// What it answered at the call before is no part of this answer: guests add to both.
	i.put(abi.OffEditN, 0)
	i.put(abi.OffOutN, 0)
	if i.p.r.interpreter {
		i.put(abi.OffFlags, i.get(abi.OffFlags)|abi.FlagInterpreter)
	}
	binary.LittleEndian.PutUint64(i.block[abi.OffFuel:], uint64(most))
	var r int32
	var e *Error
	if i.p.program && (h == abi.HookPlan || h == abi.HookLogits || h == abi.HookAccept) {
		if i.program != nil && i.program.done {
			return 0, 0, nil // it hears of no more events
		}
		r, e = i.resume(h)
	} else {
		f := i.g.hooks[h]
		if f == nil { // a lookup makes a stack: once for each guest
			f = i.g.mod.ExportedFunction("gg_" + h.String())
			i.g.hooks[h] = f
		}
		i.stack[0] = uint64(i.at)
		r, e = i.invoke(f, h)
	}
	if left := i.left(); left > 0 {
		fuel = most - left
	} else {
		fuel = most
	}
	if e != nil {
		return 0, fuel, e
	}
	i.look()
	if r < 0 {
		if i.said != "" {
			return 0, fuel, i.fail(CodeError, "%s", i.said)
		}
		return 0, fuel, i.fail(CodeError, "gg_%s returned %d", h, r)
	}
	actions = abi.Action(r)
	if e := i.check(h, actions); e != nil {
		return 0, fuel, e
	}
	if h == abi.HookEnd {
		return actions, fuel, i.commit()
	}
	return actions, fuel, nil
}

// check holds actions against what the hook may return and the plugin was granted.
func (i *Instance) check(h abi.Hook, a abi.Action) *Error {
	if a == 0 {
		return nil
	}
	if bad := a &^ h.Allowed(); bad != 0 {
		return i.fail(CodeAction, "gg_%s may not return %s (%#x)", h, bad, uint32(bad))
	}
	l, m := i.layout, i.p.manifest
	if a&abi.Edits != 0 && i.get(abi.OffEditN) > uint32(l.EditCap) {
		return i.fail(CodeAction, "EDITS of %d edits, %d were granted", i.get(abi.OffEditN), l.EditCap)
	}
	if a&abi.Mask != 0 && l.Mask == 0 {
		return i.fail(CodeAction, "MASK without view.mask")
	}
	if a&abi.Cands != 0 && (!m.Truncates || i.get(abi.OffCandN) > uint32(l.CandCap)) {
		return i.fail(CodeAction, "CANDS of %d candidates, at most %d, truncates: %v", i.get(abi.OffCandN), l.CandCap, m.Truncates)
	}
	if a&abi.Full != 0 && l.Full == 0 {
		return i.fail(CodeAction, "FULL without view.logits full")
	}
	if a&abi.Temp != 0 {
		if t := math.Float32frombits(i.get(abi.OffTemperature)); !finite(t) || t < 0 {
			return i.fail(CodeAction, "TEMP of %g", t)
		}
	}
	if a&abi.Token != 0 && i.get(abi.OffToken) >= i.vocab {
		return i.fail(CodeAction, "TOKEN %d of a vocabulary of %d", i.get(abi.OffToken), i.vocab)
	}
	if a&abi.Backtrack != 0 && (i.get(abi.OffBacktrack) == 0 || i.get(abi.OffBacktrack) > uint32(m.View.Holdback)) {
		return i.fail(CodeAction, "BACKTRACK of %d tokens, holdback is %d", i.get(abi.OffBacktrack), m.View.Holdback)
	}
	if r := abi.StopReason(i.get(abi.OffStopReason)); a&abi.Stop != 0 && (r < abi.StopStop || r > abi.StopError) {
		return i.fail(CodeAction, "STOP for reason %d", r)
	}
	return i.checkOut(h, a)
}

// checkOut checks the tokens or the text in out.
func (i *Instance) checkOut(h abi.Hook, a abi.Action) *Error {
	n := i.get(abi.OffOutN)
	switch {
	case a&abi.Force != 0 && a&abi.Text != 0:
		return i.fail(CodeAction, "FORCE and TEXT exclude each other")
	case a&abi.Force != 0:
		most := uint32(i.layout.OutCap / 4)
		if h != abi.HookPrompt {
			most = min(most, abi.MaxForced)
		}
		if n > most {
			return i.fail(CodeQuota, "FORCE of %d tokens, at most %d", n, most)
		}
		for k := range n {
			if id := i.get(i.layout.Out + 4*int(k)); id >= i.vocab {
				return i.fail(CodeAction, "FORCE of token %d of a vocabulary of %d", id, i.vocab)
			}
		}
	case a&abi.Text != 0:
		if n > uint32(i.layout.OutCap) {
			return i.fail(CodeQuota, "TEXT of %d bytes, at most %d", n, i.layout.OutCap)
		}
		if !utf8.Valid(i.block[i.layout.Out : i.layout.Out+int(n)]) {
			return i.fail(CodeAction, "TEXT is not UTF-8")
		}
	}
	return nil
}
