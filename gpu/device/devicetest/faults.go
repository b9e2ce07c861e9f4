package devicetest

import (
	"fmt"
	"slices"
	"sync"

	"ganglion/gpu/device"
)

// FaultKind is a way for a device to fail.
type FaultKind string

// The ways. A lost or hanging device stays so; the others happen where the fault says.
const (
	Lost          FaultKind = "lost"            // submission N does not come back, and the device is lost from there on
	OutOfMemory   FaultKind = "out of memory"   // allocation N fails
	WrongTile     FaultKind = "wrong tile"      // a part of a buffer is altered after submission N
	WrongKernel   FaultKind = "wrong kernel"    // what a kernel writes is altered before anything reads it
	Stale         FaultKind = "stale output"    // submission N does nothing and says that all is well
	Hang          FaultKind = "hang"            // the fence of submission N never passes
	CompileFailed FaultKind = "compile failure" // a kernel does not compile
)

// Fault is something that goes wrong, the same each time.
type Fault struct {
	Kind FaultKind
	// N counts submissions or allocations of the device from 1; 0 means every one.
	// From means that every one after the N-th fails too.
	N    int
	From bool
	// Soon has a wait for a Hang end at once, as if its time were over: what is waited for
	// besides can then have all the time that a busy machine takes.
	Soon bool
	// Kernel is the shader's name for WrongKernel and CompileFailed.
	Kernel string
	// Usage and Buffer choose the buffer of WrongTile: the Buffer-th of a usage, from 0.
	Usage  device.Usage
	Buffer int
	// Offset and Bytes are the tile, whole words; Bytes 0 means 64. For WrongKernel they
	// count among the words that the kernel has changed, so that the tile is always part
	// of its output.
	Offset, Bytes int64
	// How is what a tile of WrongKernel holds instead; Output chooses one of the ranges that
	// its dispatches write, from 1, 0 means all.
	How    Alteration
	Output int
}

// Alteration is what stands where a kernel's result should.
type Alteration int

// The alterations.
const (
	Flipped Alteration = iota // the result with a bit of each word flipped
	Zeroed                    // nothing
	Kept                      // what was there before
	Shifted                   // the result of the word that follows
)

func (a Alteration) String() string {
	return [...]string{"flipped", "zeroed", "kept", "shifted"}[a]
}

// word alters the word at a place of a kernel's results.
func (a Alteration) word(after, before, results []byte, at int) {
	word := after[at : at+4]
	switch next := at + 4; {
	case a == Zeroed:
		clear(word)
	case a == Kept:
		copy(word, before[at:])
	case a == Shifted && next+4 <= len(results):
		copy(word, results[next:next+4])
	case a == Shifted:
		copy(word, results[at-4:])
	default:
		alter(word)
	}
}

// hits says whether the fault strikes at n.
func (f Fault) hits(n int) bool { return f.N == 0 || n == f.N || f.From && n > f.N }

// tile is the size of the altered part.
func (f Fault) tile() int64 {
	if f.Bytes == 0 {
		return 64
	}
	return f.Bytes
}

// Faulty is a device with faults. Like every device it belongs to one goroutine at a
// time, except Fired and Health.
type Faulty struct {
	device.Device
	faults                   []Fault
	allocations, submissions int
	buffers                  []*faultyBuffer

	mu    sync.Mutex
	fate  error // lost or hanging
	fired []Fault
}

// Inject puts faults into a device; closing the one closes the other.
func Inject(d device.Device, faults ...Fault) *Faulty {
	return &Faulty{Device: d, faults: slices.Clone(faults)}
}

// Fired lists the faults that struck so far, each as often as it did.
func (d *Faulty) Fired() []Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.fired)
}

// Health is the fate that a fault brought, or the device's own.
func (d *Faulty) Health() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fate != nil {
		return d.fate
	}
	return d.Device.Health()
}

// strike gives the first fault of a kind that suits, and notes that it struck.
func (d *Faulty) strike(kind FaultKind, suits func(Fault) bool) (Fault, bool) {
	i := slices.IndexFunc(d.faults, func(f Fault) bool { return f.Kind == kind && suits(f) })
	if i < 0 {
		return Fault{}, false
	}
	d.note(d.faults[i])
	return d.faults[i], true
}

func (d *Faulty) note(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fired = append(d.fired, f)
}

// end marks the device as lost or hanging.
func (d *Faulty) end(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fate == nil {
		d.fate = fmt.Errorf("devicetest: injected: %w", err)
	}
	return d.fate
}

// NewBuffer counts an allocation.
func (d *Faulty) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	if err := d.Health(); err != nil {
		return nil, err
	}
	d.allocations++
	if _, ok := d.strike(OutOfMemory, func(f Fault) bool { return f.hits(d.allocations) }); ok {
		return nil, fmt.Errorf("devicetest: injected: allocation %d: %w", d.allocations, device.ErrOutOfMemory)
	}
	b, err := d.Device.NewBuffer(size, u)
	if err != nil {
		return nil, err
	}
	w := &faultyBuffer{b, d, u}
	d.buffers = append(d.buffers, w)
	return w, nil
}

// NewKernel compiles a shader, unless it is the one that does not.
func (d *Faulty) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	if err := d.Health(); err != nil {
		return nil, err
	}
	if s != nil {
		if _, ok := d.strike(CompileFailed, func(f Fault) bool { return f.Kernel == s.Name }); ok {
			return nil, fmt.Errorf("devicetest: injected: kernel %q: %w", s.Name, device.ErrCompile)
		}
	}
	return d.Device.NewKernel(s, constants)
}

// faultyBuffer is a buffer that goes with its device.
type faultyBuffer struct {
	device.Buffer
	d     *Faulty
	usage device.Usage
}

func (b *faultyBuffer) Write(offset int64, data []byte) error {
	if err := b.d.Health(); err != nil {
		return err
	}
	return b.Buffer.Write(offset, data)
}

func (b *faultyBuffer) Read(offset int64, data []byte) error {
	if err := b.d.Health(); err != nil {
		return err
	}
	return b.Buffer.Read(offset, data)
}

// alter flips a bit in the middle of each word: of a float that is near the top of the
// fraction, of a number it is 4,194,304.
func alter(data []byte) {
	for i := 2; i < len(data); i += 4 {
		data[i] ^= 0x40
	}
}

// alterTile alters the tile of a fault in the buffer that it names.
func (d *Faulty) alterTile(f Fault) error {
	n := f.Buffer
	for _, b := range d.buffers {
		if b.usage != f.Usage {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		size := min(f.tile(), b.Size()-f.Offset)
		if size <= 0 {
			return fmt.Errorf("devicetest: the tile at %d is outside a buffer of %d", f.Offset, b.Size())
		}
		data := make([]byte, size)
		if err := b.Buffer.Read(f.Offset, data); err != nil {
			return err
		}
		alter(data)
		return b.Buffer.Write(f.Offset, data)
	}
	return fmt.Errorf("devicetest: no buffer %d of usage %d to alter", f.Buffer, f.Usage)
}
