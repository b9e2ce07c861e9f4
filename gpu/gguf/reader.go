package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// maxHeader bounds metadata and tensor index of one part. The largest real ones (a
// vocabulary of 262,144 pieces with 514,000 merges) take 16 MiB.
const maxHeader = 128 << 20

// chunk sizes of header reads: the first, and the largest.
const (
	firstChunk = 64 << 10
	maxChunk   = 4 << 20
)

// reader walks through a header. It reads ahead in growing chunks, so memory follows
// the bytes that were really there and needed, never a length the file claims. It uses
// plain reads, which a file truncated meanwhile answers with an error and not a fault.
type reader struct {
	src  io.ReaderAt
	path string
	size int64  // of the GGUF
	buf  []byte // bytes 0…len(buf) of it
	off  int    // next byte
}

// fail returns a FormatError at the given offset.
func (r *reader) fail(offset int, field, format string, args ...any) error {
	return &FormatError{Path: r.path, Offset: int64(offset), Field: field, Fact: fmt.Sprintf(format, args...)}
}

// left returns how many more bytes a header field may take.
func (r *reader) left() uint64 {
	return uint64(max(min(r.size, maxHeader)-int64(r.off), 0))
}

// room checks that n elements of at least each bytes follow, before any of them is
// looked at. offset is where the count stands.
func (r *reader) room(offset int, field string, n uint64, each int) error {
	if n <= r.left()/uint64(each) {
		return nil
	}
	if r.size > maxHeader {
		return r.fail(offset, field, "%d does not fit in the %d bytes left of the largest header allowed (%d)", n, r.left(), maxHeader)
	}
	return r.fail(offset, field, "%d does not fit in the %d bytes left of the file", n, r.left())
}

// take returns the next n bytes; they are valid until the next call.
func (r *reader) take(field string, n int) ([]byte, error) {
	if uint64(n) > r.left() {
		if r.size > maxHeader {
			return nil, r.fail(r.off, field, "the header is larger than the %d bytes allowed", maxHeader)
		}
		return nil, r.fail(r.off, field, "needs %d bytes, the file ends at byte %d", n, r.size)
	}
	if err := r.fill(r.off + n); err != nil {
		return nil, err
	}
	b := r.buf[r.off:][:n:n]
	r.off += n
	return b, nil
}

// fill reads until end bytes are in the buffer; end is within the file.
func (r *reader) fill(end int) error {
	for len(r.buf) < end {
		n := min(max(len(r.buf), firstChunk), maxChunk, int(min(r.size, maxHeader))-len(r.buf))
		have := len(r.buf)
		r.buf = slices.Grow(r.buf, n)[:have+n]
		got, err := r.src.ReadAt(r.buf[have:], int64(have))
		r.buf = r.buf[:have+got]
		if got < n {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("gguf: %s: byte %d: %w", r.path, have+got, err)
		}
	}
	return nil
}

// skip steps over n bytes, which must be there.
func (r *reader) skip(field string, n int) error {
	_, err := r.take(field, n)
	return err
}

func (r *reader) u32(field string) (uint32, error) {
	b, err := r.take(field, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *reader) u64(field string) (uint64, error) {
	b, err := r.take(field, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// str reads a string of at most limit bytes: u64 length, then the bytes.
func (r *reader) str(field string, limit uint64) (string, error) {
	at := r.off
	n, err := r.strLen(field)
	if err != nil {
		return "", err
	}
	if uint64(n) > limit {
		return "", r.fail(at, field+" length", "%d bytes, at most %d are allowed", n, limit)
	}
	b, err := r.take(field, n)
	return string(b), err
}

// strLen reads a string's length and checks that its bytes are there.
func (r *reader) strLen(field string) (int, error) {
	at := r.off
	n, err := r.u64(field + " length")
	if err != nil {
		return 0, err
	}
	if err := r.room(at, field+" length", n, 1); err != nil {
		return 0, err
	}
	return int(n), nil
}
