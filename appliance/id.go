package appliance

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// idAlphabet is Crockford's base 32 in lower case: its order is the order of bytes,
// so ids sort by time.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var lastID struct {
	sync.Mutex
	time, noise uint64
}

// NewID returns a unique id for a request: "cmpl-" and 26 characters, 48 bits of
// milliseconds and 80 of noise. Ids made by one process sort in the order in which
// they were made. It is safe for concurrent use.
func NewID() string {
	var noise [10]byte
	rand.Read(noise[:]) // never fails: it crashes the program where the system has no randomness
	now := uint64(time.Now().UnixMilli())

	lastID.Lock()
	n := binary.BigEndian.Uint64(noise[2:]) >> 1
	if now <= lastID.time {
		now, n = lastID.time, lastID.noise+1
	}
	lastID.time, lastID.noise = now, n
	lastID.Unlock()

	return formatID(now, binary.BigEndian.Uint16(noise[:2]), n)
}

// formatID writes 48 bits of time, 64 of counter and 16 of tail as 26 characters of
// five bits, the first of which holds three.
func formatID(ms uint64, tail uint16, n uint64) string {
	hi := ms<<16 | n>>48
	lo := n<<16 | uint64(tail)
	var b strings.Builder
	b.WriteString("cmpl-")
	for shift := 125; shift >= 0; shift -= 5 {
		var v uint64
		switch {
		case shift >= 64:
			v = hi >> (shift - 64)
		case shift > 59:
			v = hi<<(64-shift) | lo>>shift
		default:
			v = lo >> shift
		}
		b.WriteByte(idAlphabet[v&31])
	}
	return b.String()
}
