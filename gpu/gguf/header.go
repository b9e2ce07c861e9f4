package gguf

import (
	"encoding/binary"
	"math/bits"
)

// Bounds beyond any real file that keep memory in proportion to the header's bytes.
const (
	maxKeys    = 1 << 16
	maxTensors = 1 << 18
	maxKeyLen  = 1<<16 - 1 // GGUF specification
	maxNameLen = 1 << 10   // tensor name; 64 in the specification
)

const (
	magic            = "GGUF"
	defaultAlignment = 32 // GGUF specification: general.alignment
	maxAlignment     = 1 << 30
)

// entry is one key with its value.
type entry struct {
	key   string
	at    int // offset of the value's type, for errors
	value Value
}

// header is what one part says about itself.
type header struct {
	path    string
	version uint32
	bytes   []byte // header as read, up to the end of the tensor index
	entries []entry
	index   map[string]int // key -> entry
	tensors []Tensor
	data    int64 // start of the tensor data
}

// parseHeader reads metadata and tensor index of the GGUF in r and checks every field.
func parseHeader(r *reader) (*header, error) {
	h := &header{path: r.path, index: map[string]int{}}
	var err error
	if h.version, err = readVersion(r); err != nil {
		return nil, err
	}
	tensorsAt := r.off
	tensors, err := r.u64("tensor count")
	if err != nil {
		return nil, err
	}
	keysAt := r.off
	keys, err := r.u64("key count")
	if err != nil {
		return nil, err
	}
	// The smallest key is an empty name and a byte, the smallest tensor a scalar without
	// a name.
	if err := countInRange(r, tensorsAt, "tensor count", tensors, maxTensors, 8+4+4+8); err != nil {
		return nil, err
	}
	if err := countInRange(r, keysAt, "key count", keys, maxKeys, 8+4+1); err != nil {
		return nil, err
	}
	for i := range int(keys) {
		if err := h.readEntry(r, i); err != nil {
			return nil, err
		}
	}
	align, err := h.alignment(r)
	if err != nil {
		return nil, err
	}
	if err := h.readTensors(r, int(tensors), align); err != nil {
		return nil, err
	}
	h.bytes = r.buf[:r.off:r.off]
	for i := range h.entries {
		h.entries[i].value.resolve(h.bytes)
	}
	return h, nil
}

// countInRange checks a count against the bound and against the bytes left.
func countInRange(r *reader, at int, field string, n, bound uint64, each int) error {
	if err := r.room(at, field, n, each); err != nil {
		return err
	}
	if n > bound {
		return r.fail(at, field, "%d, at most %d are allowed", n, bound)
	}
	return nil
}

// readVersion reads magic and version.
func readVersion(r *reader) (uint32, error) {
	b, err := r.take("magic", 4)
	if err != nil {
		return 0, err
	}
	if string(b) != magic {
		return 0, r.fail(0, "magic", "%q, a GGUF file begins with %q", b, magic)
	}
	v, err := r.u32("version")
	if err != nil {
		return 0, err
	}
	switch {
	case v == 2 || v == 3:
		return v, nil
	case v != 0 && v&0xffff == 0:
		return 0, r.fail(4, "version", "big-endian file (version %d), only little-endian files are supported", bits.ReverseBytes32(v))
	}
	return 0, r.fail(4, "version", "%d is not supported, versions 2 and 3 are", v)
}

// readEntry reads key number i and its value.
func (h *header) readEntry(r *reader, i int) error {
	at := r.off
	key, err := r.str(ordinal("key", i), maxKeyLen)
	if err != nil {
		return err
	}
	field := quoted("key", key)
	if _, dup := h.index[key]; dup {
		return r.fail(at, field, "appears twice")
	}
	e := entry{key: key, at: r.off}
	if e.value, err = readValue(r, field); err != nil {
		return err
	}
	h.index[key] = len(h.entries)
	h.entries = append(h.entries, e)
	return nil
}

// alignment returns general.alignment. It is called before values are resolved, so it
// reads the bytes itself.
func (h *header) alignment(r *reader) (int64, error) {
	const key = "general.alignment"
	i, ok := h.index[key]
	if !ok {
		return defaultAlignment, nil
	}
	e := h.entries[i]
	e.value.resolve(r.buf)
	n, ok := e.value.asUint()
	if !ok {
		return 0, r.fail(e.at, quoted("key", key), "%s is not a whole number", e.value)
	}
	if bits.OnesCount64(n) != 1 || n > maxAlignment {
		return 0, r.fail(e.at, quoted("key", key), "%d is not a power of two up to %d", n, maxAlignment)
	}
	return int64(n), nil
}

func (h *header) lookup(key string) (Value, bool) {
	i, ok := h.index[key]
	if !ok {
		return Value{}, false
	}
	return h.entries[i].value, true
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
