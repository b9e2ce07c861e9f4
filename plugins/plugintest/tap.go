package plugintest

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
)

// call is one call of a hook as a tap saw it.
type call struct {
	hook    abi.Hook
	step    int
	cands   int // candidates it was shown
	actions abi.Action
	fuel    int64
	failed  bool
	time    time.Duration
	outputs uint64 // hash of what the actions name
	memory  uint64 // hash of the whole state; 0: not asked for
}

// same tells whether two calls did the same, the time aside.
func (c call) same(d call) bool {
	c.time, d.time = 0, 0
	return c == d
}

// tap sits between a pipeline and an instance, watches every call, and can break some.
type tap struct {
	pipeline.Instance
	s *session
	b []byte // of snapshots
}

// errBroken is the failure of a call that a session breaks on purpose.
var errBroken = errors.New("broken on purpose")

// Call implements pipeline.Instance.
func (t *tap) Call(h abi.Hook) (abi.Action, int64, error) {
	s := t.s
	if !t.Has(h) { // the end of a text is told to all: what they stored is kept then
		return t.Instance.Call(h)
	}
	frame := t.Frame()
	step := int(get(frame, abi.OffStep))
	if s.breakAt != nil && s.breakAt(h, step) {
		return 0, 0, errBroken
	}
	if s.interpreted {
		put(frame, abi.OffFlags, get(frame, abi.OffFlags)|abi.FlagInterpreter)
	}
	if s.audit != nil {
		s.audit.before(frame, t.Layout())
	}
	c := call{hook: h, step: step, cands: int(get(frame, abi.OffCandN))}
	from := time.Now()
	actions, fuel, err := t.Instance.Call(h)
	c.time = time.Since(from)
	c.actions, c.fuel, c.failed = actions, fuel, err != nil
	if err != nil {
		s.calls = append(s.calls, c)
		return actions, fuel, err
	}
	if s.audit != nil {
		if e := s.audit.after(h, t.Frame(), t.Layout()); e != nil {
			return actions, fuel, e
		}
	}
	if s.hashed {
		c.outputs = t.outputs(actions)
		if c.memory, err = t.memory(); err != nil {
			return actions, fuel, err
		}
	}
	s.pages = max(s.pages, t.size())
	s.calls = append(s.calls, c)
	return actions, fuel, nil
}

var seed = maphash.MakeSeed()

// memory hashes the guest's state, without the mark of the interpreter.
func (t *tap) memory() (uint64, error) {
	if t.s.program {
		return 0, nil // its state is on a stack, which no snapshot holds
	}
	frame := t.Frame()
	flags := get(frame, abi.OffFlags)
	put(frame, abi.OffFlags, flags&^abi.FlagInterpreter)
	var err error
	t.b, err = t.Snapshot(t.b[:0])
	put(frame, abi.OffFlags, flags)
	return maphash.Bytes(seed, t.b), err
}

// size is the size of the state in bytes; 0 where it is not watched.
func (t *tap) size() int {
	if !t.s.sized || t.s.program {
		return 0
	}
	var err error
	if t.b, err = t.Snapshot(t.b[:0]); err != nil {
		return 0
	}
	return len(t.b)
}

// outputs hashes the parts of the frame that actions name.
func (t *tap) outputs(a abi.Action) uint64 {
	f, l := t.Frame(), t.Layout()
	var h maphash.Hash
	h.SetSeed(seed)
	word := func(off int) uint32 {
		h.Write(f[off : off+4])
		return get(f, off)
	}
	if a&abi.Edits != 0 {
		h.Write(part(f, l.Edits, abi.EditBytes*int(word(abi.OffEditN))))
	}
	if a&abi.Mask != 0 {
		h.Write(part(f, l.Mask, int(get(f, abi.OffVocab)+31)/32*4))
	}
	if a&abi.Cands != 0 {
		n := 4 * int(word(abi.OffCandN))
		h.Write(part(f, l.CandIDs, n))
		h.Write(part(f, l.CandLogits, n))
	}
	if a&abi.Full != 0 {
		h.Write(part(f, l.Full, 4*int(get(f, abi.OffVocab))))
	}
	if a&abi.Force != 0 {
		h.Write(part(f, l.Out, 4*int(word(abi.OffOutN))))
	}
	if a&abi.Text != 0 {
		h.Write(part(f, l.Out, int(word(abi.OffOutN))))
	}
	for _, o := range [...]struct {
		action abi.Action
		off    int
	}{{abi.Temp, abi.OffTemperature}, {abi.Token, abi.OffToken}, {abi.Backtrack, abi.OffBacktrack}, {abi.Stop, abi.OffStopReason}, {abi.Idle, abi.OffWakeStep}} {
		if a&o.action != 0 {
			word(o.off)
		}
	}
	return h.Sum64()
}

func get(frame []byte, off int) uint32    { return binary.LittleEndian.Uint32(frame[off:]) }
func put(frame []byte, off int, v uint32) { binary.LittleEndian.PutUint32(frame[off:], v) }

// part is a part of a frame, cut where a guest claims more than there is.
func part(frame []byte, off, n int) []byte {
	off = min(off, len(frame))
	return frame[off:min(off+max(n, 0), len(frame))]
}
