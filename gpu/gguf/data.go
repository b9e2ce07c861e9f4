package gguf

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"unsafe"
)

// mapFile maps whole pages of a file; tests replace it to stand for a file system
// without mmap.
var mapFile = mmapFile

// mapData maps the part. Where that fails (a file system without mmap, a system
// without it, no address space left) the part stays unmapped and Data reads instead.
func (p *part) mapData() {
	if len(p.head.tensors) == 0 {
		return
	}
	lead := p.offset % int64(os.Getpagesize())
	if p.size > math.MaxInt-lead {
		return
	}
	b, err := mapFile(p.file, p.offset-lead, int(p.size+lead))
	if err != nil {
		return
	}
	p.mapped, p.lead = b, int(lead)
}

func (p *part) unmap() error {
	b := p.mapped
	p.mapped = nil
	if b == nil {
		return nil
	}
	return munmapFile(b)
}

// Forget gives the mapped pages back to the system, for instance once a backend has
// packed the weights into memory of its own: the process then holds one copy of them.
// Slices that Data returned stay valid; what is touched again is mapped again.
func (f *File) Forget() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var errs []error
	for _, p := range f.parts {
		if p.mapped != nil {
			errs = append(errs, forgetFile(p.mapped))
		}
	}
	return errors.Join(errs...)
}

// Mapped reports whether Data returns slices of mappings of the file. If not, Data
// reads a tensor at its first use and keeps it in memory until Close.
func (f *File) Mapped() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, p := range f.parts {
		if p.mapped == nil && len(p.head.tensors) > 0 {
			return false
		}
	}
	return true
}

// Data returns the bytes of a tensor of this file, read-only: writing to them faults.
// They are valid until Close. See the package comment on files truncated meanwhile:
// the file's size is checked here, not while the slice is used.
func (f *File) Data(t Tensor) ([]byte, error) {
	f.mu.RLock()
	p, err := f.partOf(t)
	var b []byte
	if err == nil {
		err = p.check()
	}
	if err == nil {
		b = p.have(t)
	}
	f.mu.RUnlock()
	if err != nil || b != nil {
		return b, err
	}
	return f.load(t)
}

// have returns the tensor's bytes if they are mapped or loaded.
func (p *part) have(t Tensor) []byte {
	if p.mapped == nil {
		return p.loaded[t.Offset]
	}
	at := int64(p.lead) + t.Offset
	return p.mapped[at:][:t.Bytes:t.Bytes]
}

// load reads a tensor into memory of its own and keeps it.
func (f *File) load(t Tensor) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.partOf(t)
	if err != nil {
		return nil, err
	}
	if b := p.have(t); b != nil {
		return b, nil
	}
	if t.Bytes > math.MaxInt {
		return nil, fmt.Errorf("gguf: %s: %s: %d bytes do not fit in memory", p.path, quoted("tensor", t.Name), t.Bytes)
	}
	b := make([]byte, t.Bytes)
	if err := p.read(t, b, 0); err != nil {
		return nil, err
	}
	if p.loaded == nil {
		p.loaded = map[int64][]byte{}
	}
	p.loaded[t.Offset] = b
	return b, nil
}

// ReadTensor fills dst with the bytes of a tensor from byte at on, by plain reads: a
// file truncated meanwhile is an error here and never a fault.
func (f *File) ReadTensor(t Tensor, dst []byte, at int64) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p, err := f.partOf(t)
	if err != nil {
		return err
	}
	if at < 0 || at > t.Bytes || int64(len(dst)) > t.Bytes-at {
		return fmt.Errorf("gguf: %s: %d bytes at byte %d are outside its %d bytes", quoted("tensor", t.Name), len(dst), at, t.Bytes)
	}
	return p.read(t, dst, at)
}

func (p *part) read(t Tensor, dst []byte, at int64) error {
	_, err := p.file.ReadAt(dst, p.offset+t.Offset+at)
	switch {
	case err == nil || len(dst) == 0:
		return nil
	case err == io.EOF:
		err = ErrTruncated
	}
	return fmt.Errorf("gguf: %s: %s: %w", p.path, quoted("tensor", t.Name), err)
}

// partOf returns the part that holds a tensor and checks that the tensor is one of
// this file's. The caller holds f.mu.
func (f *File) partOf(t Tensor) (*part, error) {
	if f.closed {
		return nil, ErrClosed
	}
	i, ok := f.index[t.Name]
	if !ok || f.list[i].Offset != t.Offset || f.list[i].Bytes != t.Bytes || f.list[i].Part != t.Part {
		return nil, fmt.Errorf("gguf: %s: no such %s", f.path, quoted("tensor", t.Name))
	}
	return f.parts[t.Part], nil
}

// Check returns an error that wraps ErrTruncated if a part has lost bytes since it was
// opened; touching its mapped data would fault. It costs a system call per part. A
// file that was removed or replaced under its name is not affected and passes.
func (f *File) Check() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return ErrClosed
	}
	for _, p := range f.parts {
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) check() error {
	size, err := sizeOf(p.file)
	if err != nil {
		return fmt.Errorf("gguf: %s: %w", p.path, err)
	}
	if need := p.offset + p.size; size < need {
		return fmt.Errorf("gguf: %s: has %d of %d bytes: %w", p.path, size, need, ErrTruncated)
	}
	return nil
}

// Guard calls fn and returns its error. If Go code of fn, in this goroutine, touches a
// page of this file's mappings that is gone (truncated file, failed disk), fn is cut
// short by a panic, its deferred calls run, and Guard returns an error that wraps
// ErrTruncated. Other panics pass through. The file must stay open meanwhile.
func (f *File) Guard(fn func() error) (err error) {
	// The setting belongs to the goroutine, so it neither leaks to nor comes from others.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		var fault interface{ Addr() uintptr }
		if e, ok := r.(error); !ok || !errors.As(e, &fault) || !f.maps(fault.Addr()) {
			panic(r)
		}
		err = fmt.Errorf("gguf: %s: reading mapped data failed: %w", f.path, ErrTruncated)
	}()
	return fn()
}

// maps reports whether an address lies in a mapping of the file.
func (f *File) maps(addr uintptr) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, p := range f.parts {
		// Sound: the address is compared, never turned back into a pointer.
		start := uintptr(unsafe.Pointer(unsafe.SliceData(p.mapped)))
		if p.mapped != nil && addr >= start && addr-start < uintptr(len(p.mapped)) {
			return true
		}
	}
	return false
}
