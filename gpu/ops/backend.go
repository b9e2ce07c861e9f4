package ops

import (
	"context"
	"errors"
	"fmt"
)

// Numerics is the promise a runtime keeps about its arithmetic.
type Numerics uint8

const (
	// Fast is free in its arithmetic but independent of batch neighbours, cache
	// state and chunking on one device.
	Fast Numerics = iota
	// Exact is float32 with the fixed reduction orders of gpu/DESIGN.md: the same
	// bits on every backend.
	Exact
)

func (n Numerics) String() string {
	if n == Exact {
		return "exact"
	}
	return "fast"
}

// Options fixes what a runtime allocates. Spare and Snapshots may be 0; all other
// counts must be set.
type Options struct {
	Slots     int // sequences held at once
	Context   int // positions per sequence
	MaxRows   int // largest batch in rows
	Numerics  Numerics
	KV        KVType
	Threads   int // CPU threads; GPU backends ignore it
	Spare     int // pages per group beyond what the slots can need; they keep finished beginnings
	Snapshots int // snapshots of recurrent state kept for reuse, on the host
}

// Check reports the first field that is not set.
func (o Options) Check() error {
	if o.Slots <= 0 || o.Context <= 0 || o.MaxRows <= 0 || o.Threads <= 0 {
		return fmt.Errorf("ops: options: %d slots, context %d, %d rows, %d threads: all must be positive",
			o.Slots, o.Context, o.MaxRows, o.Threads)
	}
	if o.Spare < 0 || o.Snapshots < 0 {
		return fmt.Errorf("ops: options: %d spare pages, %d snapshots: negative", o.Spare, o.Snapshots)
	}
	if o.Numerics > Exact || o.KV >= kvTypes {
		return fmt.Errorf("ops: options: numerics %d, KV type %d: unknown", o.Numerics, o.KV)
	}
	return nil
}

// Sentinels a caller may ask for with errors.Is.
var (
	ErrUnsupported = errors.New("ops: unsupported by this backend")
	ErrOutOfMemory = errors.New("ops: out of device memory")
	ErrDeviceLost  = errors.New("ops: device lost")
	ErrClosed      = errors.New("ops: closed")
	ErrStopped     = errors.New("ops: stopped") // by Batch.Stop
)

// Caps states what a backend can do beyond the plain operations.
type Caps struct {
	Device   string // hardware, as shown to people
	Exact    bool   // Numerics Exact is available
	Fused    []string
	MaxRange int64 // largest weight window in bytes; 0 = no limit
}

// Backend is the code that runs plans on one device. Methods are safe for
// concurrent use; a backend is closed after its runtimes.
type Backend interface {
	Name() string
	Caps() Caps
	// Load uploads or repacks the plan's weights and allocates the pages of KV
	// caches (NewPaging) and state for o.Slots sequences. It reports progress in bytes of weights done
	// (progress may be nil) and stops when ctx is done.
	Load(ctx context.Context, p *Plan, o Options, progress func(done, total int64)) (Runtime, error)
	Close() error
}

// Runtime is a loaded plan: weights, caches and state on a device. A runtime and
// its programs belong to one goroutine at a time.
type Runtime interface {
	// Compile prepares a program for batches of up to rows rows and outs outputs.
	Compile(s Shape) (Program, error)
	// CopyPage copies a page of every cache of a group (see Paging).
	CopyPage(group, dst, src int) error
	// SaveState copies the recurrent state of a slot into into[:0], which grows where
	// it is too small, and returns it; it is empty when the plan has none. The states stand
	// in the plan's order, each as its operation says (op.go), the same on every backend.
	SaveState(slot int, into []float32) ([]float32, error)
	// LoadState puts a saved state back; nil sets the state of position 0.
	LoadState(slot int, state []float32) error
	// Memory tells what was allocated.
	Memory() Memory
	Close() error
}

// Shape is the bucket a program is compiled for.
type Shape struct {
	Rows int
	Outs int
}

// Program is a plan compiled for a shape. Run executes one batch and fills r; it
// returns an error that wraps ErrDeviceLost, ErrOutOfMemory, ErrClosed or ErrStopped where
// a caller can act on it. A row with a logit that is not finite is no error of the
// batch: its head says so.
type Program interface {
	Run(b *Batch, r *Result) error
	Close() error
}

// Part is what a runtime has on one of the backends that it lies on.
type Part struct {
	Backend, Device string
	Phase           string // PhasePrompt or PhaseDecode where it serves one phase alone
	Holds           string // for people: "the embedding, layers 0 to 11"
	Memory          Memory
}

// The phases of a sequence: reading a prompt, and writing token after token.
const (
	PhasePrompt = "prompt"
	PhaseDecode = "decode"
)

// Copied is a backend that keeps a plan more than once (gpu/phase).
type Copied interface {
	// Copies is how often weights, caches and activations of a plan lie in memory.
	Copies() int
}

// Copies is how often a backend keeps a plan.
func Copies(b Backend) int {
	if c, ok := b.(Copied); ok {
		return c.Copies()
	}
	return 1
}

// Parted is a runtime that may lie on several backends (gpu/split).
type Parted interface {
	// Parts tells what lies where, in the order in which a batch runs; the parts'
	// memory adds up to Runtime.Memory.
	Parts() []Part
}

// Memory is what a runtime holds, in bytes.
type Memory struct {
	Weights int64 // repacked or uploaded, beside the mapping of the file
	KV      int64 // caches and recurrent state
	Scratch int64 // activations
}
