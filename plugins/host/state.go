package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"ganglion/plugins/abi"
)

// kept is what an instance stored and did not commit yet.
type kept struct {
	from   map[string][]byte // the store at the start of the request
	writes []write           // in order; a snapshot is their number
	bytes  int               // of all values with the writes in place
	held   int               // bytes of the writes, those that others followed included
}

// write is one kv_set or kv_del.
type write struct {
	key   string
	value []byte // nil: deleted
	delta int    // what it added to bytes
}

func (k *kept) open(s *Services, m *abi.Manifest) {
	if s.Store == nil || !m.Can(abi.CapKV) {
		return
	}
	k.from = s.Store.Read(m.Name)
	for key, v := range k.from {
		k.bytes += len(key) + len(v)
	}
}

// get finds the value of a key.
func (k *kept) get(key string) ([]byte, bool) {
	for _, w := range slices.Backward(k.writes) {
		if w.key == key {
			return w.value, w.value != nil
		}
	}
	v, ok := k.from[key]
	return v, ok
}

// set notes a write; value nil deletes. It is refused where the plugin would store more
// than it may, in its values or in the writes of this request.
func (k *kept) set(key string, value []byte) bool {
	old, had := k.get(key)
	delta := 0
	if had {
		delta -= len(key) + len(old)
	}
	if value != nil {
		delta += len(key) + len(value)
	}
	size := len(key) + len(value)
	if k.bytes+delta > MaxStoreBytes || len(k.writes) >= maxWrites || k.held+size > maxWriteBytes {
		return false
	}
	k.bytes += delta
	k.held += size
	k.writes = append(k.writes, write{key, value, delta})
	return true
}

// rewind takes back all writes but the first n.
func (k *kept) rewind(n int) {
	for len(k.writes) > n {
		last := len(k.writes) - 1
		k.bytes -= k.writes[last].delta
		k.held -= len(k.writes[last].key) + len(k.writes[last].value)
		k.writes = k.writes[:last]
	}
}

// commit hands the writes to the store, once.
func (i *Instance) commit() error {
	k := &i.state
	if len(k.writes) == 0 || i.services.Store == nil {
		return nil
	}
	last := make(map[string][]byte, len(k.writes))
	for _, w := range k.writes {
		last[w.key] = w.value
	}
	k.writes = nil
	if err := i.services.Store.Commit(i.p.manifest.Name, last); err != nil {
		code := CodeStore
		if errors.Is(err, errStoreFull) {
			code = CodeQuota
		}
		return i.fail(code, "storing: %v", err)
	}
	return nil
}

// snapshotMagic begins a state: states go through other hands.
var snapshotMagic = []byte("GGS1")

// snapshotHead are the bytes before the globals: magic, pages u32, writes u32, WASI's clock
// u64.
const snapshotHead = 20

// errProgram says that a state has a part that cannot be copied.
var errProgram = errors.New("host: a program in gg_run has its state on a stack, which no snapshot holds")

// Snapshot appends the plugin's state to dst: memory, globals, what it stored, the time of
// its clock.
func (i *Instance) Snapshot(dst []byte) ([]byte, error) {
	if i.g == nil || i.err != nil {
		return dst, orError(asError(i.err), errors.New("host: the instance is closed"))
	}
	if i.p.program {
		return dst, errProgram
	}
	memory, _ := i.g.memory.Read(0, i.g.memory.Size())
	dst = slices.Grow(dst, snapshotHead+8*len(i.g.globals)+len(memory))
	dst = append(dst, snapshotMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(memory)/memoryPage))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(i.state.writes)))
	dst = binary.LittleEndian.AppendUint64(dst, i.time)
	for _, g := range i.g.globals {
		dst = binary.LittleEndian.AppendUint64(dst, g.Get())
	}
	return append(dst, memory...), nil
}

// Restore puts a state of Snapshot of the same instance back.
func (i *Instance) Restore(state []byte) error {
	if i.g == nil || i.err != nil {
		return orError(asError(i.err), errors.New("host: the instance is closed"))
	}
	head := snapshotHead + 8*len(i.g.globals)
	if len(state) < head || !bytes.HasPrefix(state, snapshotMagic) {
		return errors.New("host: this is no state of the plugin")
	}
	pages := binary.LittleEndian.Uint32(state[4:])
	writes := binary.LittleEndian.Uint32(state[8:])
	memory := state[head:]
	if uint64(len(memory)) != uint64(pages)*memoryPage || int(writes) > len(i.state.writes) {
		return errors.New("host: this is no state of the plugin")
	}
	globals := make([]uint64, 0, 16)
	for n := range i.g.globals {
		globals = append(globals, binary.LittleEndian.Uint64(state[snapshotHead+8*n:]))
	}
	if i.g.memory.Size() > uint32(len(memory)) { // it grew since, and does not shrink
		g, err := i.p.instantiate()
		if err != nil {
			return i.fail(CodeMemory, "%v", err)
		}
		i.g.close()
		i.g = g
	}
	if err := i.g.put(pages, memory, globals); err != nil {
		return i.fail(CodeMemory, "%v", err)
	}
	i.state.rewind(int(writes))
	i.time = min(binary.LittleEndian.Uint64(state[12:]), wasiClockEnd)
	i.look()
	return nil
}

// asError keeps a nil *Error from becoming an error that is not nil.
func asError(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}
