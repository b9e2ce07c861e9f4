package gguf

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// File is an open model file. Its methods may be called from several goroutines at
// once, except that nothing may use a slice of Data during or after Close.
type File struct {
	path  string
	head  *header // of the first part: it holds the metadata
	parts []*part
	list  []Tensor       // of all parts, in order
	index map[string]int // tensor name -> list

	mu     sync.RWMutex // guards closed and the parts' loaded tensors
	closed bool
}

// part is one file of a model, or a window of one.
type part struct {
	path   string
	file   *os.File
	offset int64 // of the GGUF in the file
	size   int64 // of the GGUF
	head   *header

	mapped []byte           // whole pages that hold the GGUF; nil when it could not be mapped
	lead   int              // bytes of mapped before the GGUF
	loaded map[int64][]byte // by tensor offset, where mapped is nil
}

// Open opens a model file and maps it into memory. Of a split file
// (NAME-00001-of-00003.gguf) any part may be named; all parts are opened. The caller
// must Close it.
func Open(path string) (*File, error) {
	p, err := openPart(path, 0, -1)
	if err != nil {
		return nil, err
	}
	parts, err := openSplit(p)
	if err != nil {
		return nil, err
	}
	return newFile(path, parts)
}

// OpenAt opens the GGUF that stands in size bytes at offset inside another file, such
// as a model appended to the executable. It may not be a part of a split file.
func OpenAt(path string, offset, size int64) (*File, error) {
	if offset < 0 || size < 0 {
		return nil, fmt.Errorf("gguf: %s: no window of %d bytes at byte %d", path, size, offset)
	}
	p, err := openPart(path, offset, size)
	if err != nil {
		return nil, err
	}
	if s, err := p.split(); err != nil || s.count > 1 {
		p.close()
		if err == nil {
			err = fmt.Errorf("gguf: %s: the model at byte %d is part %d of %d, a model inside a file must be whole", path, offset, s.no+1, s.count)
		}
		return nil, err
	}
	return newFile(path, []*part{p})
}

// openPart opens one file and parses the header of the GGUF in the given window of it;
// size −1 means to the end.
func openPart(path string, offset, size int64) (*part, error) {
	// The kind is looked at first: opening a pipe would wait for its other end.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("gguf: %s: is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	p := &part{path: path, file: f, offset: offset, size: size}
	if err := p.parse(); err != nil {
		f.Close()
		return nil, err
	}
	return p, nil
}

// parse settles the window and reads the header.
func (p *part) parse() error {
	info, err := p.file.Stat()
	if err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	switch left := info.Size() - p.offset; {
	case p.size < 0:
		p.size = left
	case p.size > left:
		return fmt.Errorf("gguf: %s: %d bytes at byte %d do not fit, the file has %d", p.path, p.size, p.offset, info.Size())
	}
	r := &reader{src: io.NewSectionReader(p.file, p.offset, p.size), path: p.path, size: p.size}
	p.head, err = parseHeader(r)
	return err
}

// newFile joins the parts, which it owns: it closes them on an error.
func newFile(path string, parts []*part) (*File, error) {
	f := &File{path: path, head: parts[0].head, parts: parts, index: map[string]int{}}
	for i, p := range parts {
		for _, t := range p.head.tensors {
			if j, dup := f.index[t.Name]; dup {
				other := parts[f.list[j].Part].path
				f.Close()
				return nil, fmt.Errorf("gguf: %s: %s is also in %s", p.path, quoted("tensor", t.Name), other)
			}
			t.Part = i
			f.index[t.Name] = len(f.list)
			f.list = append(f.list, t)
		}
	}
	for _, p := range parts {
		p.mapData()
	}
	return f, nil
}

// Close unmaps and closes the file. Slices that Data returned must not be used any
// more. Metadata and tensor index stay readable. Closing twice is fine.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var first error
	for _, p := range f.parts {
		if err := p.close(); err != nil && first == nil {
			first = fmt.Errorf("gguf: %w", err)
		}
	}
	return first
}

// close releases mapping, loaded tensors and file.
func (p *part) close() error {
	p.loaded = nil
	unmapErr := p.unmap()
	if err := p.file.Close(); err != nil {
		return err
	}
	return unmapErr
}

// Path returns the path the file was opened by, as it was given.
func (f *File) Path() string { return f.path }

// Version returns the GGUF version, 2 or 3.
func (f *File) Version() uint32 { return f.head.version }

// Size returns the bytes of the model: of all parts together.
func (f *File) Size() int64 {
	var n int64
	for _, p := range f.parts {
		n += p.size
	}
	return n
}

// Parts returns the paths of the files that hold the model, in order. The caller owns
// the slice.
func (f *File) Parts() []string {
	paths := make([]string, len(f.parts))
	for i, p := range f.parts {
		paths[i] = p.path
	}
	return paths
}

// Tensors returns all tensors in file order. The caller owns the slice, not the Dims.
func (f *File) Tensors() []Tensor { return slices.Clone(f.list) }

// Tensor returns the tensor of a name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.list[i], true
}

// Hash returns "sha256:…" over the headers and sizes of all parts. It tells models
// apart without reading their weights: two files that differ in weights alone, with
// the very same header and size, have the same hash.
func (f *File) Hash() string {
	h := sha256.New()
	for _, p := range f.parts {
		h.Write(p.head.bytes)
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(p.size)))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
