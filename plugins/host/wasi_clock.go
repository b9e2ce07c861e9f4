package host

import (
	"encoding/binary"
	"math"
)

// The clock of WASI. Nothing from outside moves it, so that it repeats with the request: it
// says how often it was read and how long the guest slept. It does not stand still, for code
// that waits for time to pass would burn all its fuel, and in no unit up to seconds does it
// begin at 0, which Go's runtime takes for a clock that is broken.
//
// Its time is the instance's, in snapshots and in the image that instances start from: a
// guest never sees it go back from what its memory holds.
const (
	wasiClockStart = 1_000_000_000 // ns, of all clocks, at the start of an instance
	wasiClockStep  = 1_000         // ns that a reading takes
	wasiClockEnd   = math.MaxInt64 // ns: Go counts in signed numbers
	wasiClocks     = 4             // real time, monotonic, processor time of process and thread
)

// What poll_oneoff reads and writes.
const (
	wasiSubscriptionBytes = 48 // user data u64, tag u8, then at 16 what is waited for
	wasiEventBytes        = 32 // user data u64, error u16, tag u8, bytes and flags of a file
	wasiWaitClock         = 0  // tag: clock u32, time u64, precision u64, flags u16
	wasiWaitRead          = 1  // tag: file u32
	wasiWaitWrite         = 2  // tag: file u32
	wasiAbsolute          = 1  // flag of a clock: its time is no duration
)

// wasiClock reads the clock.
func wasiClock(i *Instance, s []uint64) int {
	if arg(s[0]) >= wasiClocks {
		return wasiInvalid
	}
	if !i.g.memory.WriteUint64Le(arg(s[2]), i.time) {
		return wasiFault
	}
	i.time = later(i.time, wasiClockStep)
	return 0
}

// wasiResolution says what a clock counts in.
func wasiResolution(i *Instance, s []uint64) int {
	if arg(s[0]) >= wasiClocks {
		return wasiInvalid
	}
	if !i.g.memory.WriteUint64Le(arg(s[1]), wasiClockStep) {
		return wasiFault
	}
	return 0
}

// later is a time after another; behind the end there is none.
func later(t, by uint64) uint64 {
	if by > wasiClockEnd-t {
		return wasiClockEnd
	}
	return t + by
}

// wasiPoll waits without waiting: it sets the clock to the first time that something happens.
// Files are always ready, for what there is to say of them: standard output takes what is
// written, others do not exist.
func wasiPoll(i *Instance, s []uint64) int {
	in, out, n := arg(s[0]), arg(s[1]), arg(s[2])
	if n == 0 || n > math.MaxUint32/wasiSubscriptionBytes {
		return wasiInvalid
	}
	from, ok := i.input(in, n*wasiSubscriptionBytes)
	if !ok {
		return wasiFault
	}
	to, ok := i.input(out, n*wasiEventBytes)
	if !ok {
		return wasiFault
	}
	now, first := i.time, uint64(wasiClockEnd)
	for at := 0; at < len(from); at += wasiSubscriptionBytes {
		first = min(first, wasiDue(from[at:], now))
	}
	i.time = max(now, first)
	events := uint32(0)
	for at := 0; at < len(from); at += wasiSubscriptionBytes {
		b := from[at:]
		if wasiDue(b, now) > i.time {
			continue
		}
		var event [wasiEventBytes]byte
		copy(event[:8], b)
		binary.LittleEndian.PutUint16(event[8:], wasiOutcome(b))
		event[10] = b[8]
		copy(to[events*wasiEventBytes:], event[:])
		events++
	}
	if !i.g.memory.WriteUint32Le(arg(s[3]), events) {
		return wasiFault
	}
	return 0
}

// wasiDue is the time at which a subscription that was made now has something to say; 0: at
// once.
func wasiDue(b []byte, now uint64) uint64 {
	if wasiOutcome(b) != 0 || b[8] != wasiWaitClock {
		return 0
	}
	t := binary.LittleEndian.Uint64(b[24:])
	if binary.LittleEndian.Uint16(b[40:])&wasiAbsolute == 0 {
		return later(now, t)
	}
	return min(t, wasiClockEnd)
}

// wasiOutcome is the error of a subscription.
func wasiOutcome(b []byte) uint16 {
	what := binary.LittleEndian.Uint32(b[16:])
	switch tag := b[8]; {
	case tag == wasiWaitClock && what < wasiClocks, tag == wasiWaitWrite && wasiStandard(what):
		return 0
	case tag == wasiWaitRead || tag == wasiWaitWrite:
		return wasiBadFile
	}
	return wasiInvalid
}
