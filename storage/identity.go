package storage

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Offsets in SQLite's file formats (https://sqlite.org/fileformat2.html, sections 1.3
// and 4.1). Numbers are big endian.
const (
	headerBytes   = 100
	headerMagic   = "SQLite format 3\x00"
	atWriteMode   = 18 // 2: write-ahead log
	atApplication = 68 // PRAGMA application_id

	walHeaderBytes = 32
	frameBytes     = 24 // header of a frame, before the page
	walMagic       = 0x377f0682
)

// applicationMark is the upper half of a log's application id; the lower is random.
// A write-ahead log does not say which file it belongs to. So every batch of records
// writes the id anew: page 1, where it stands, is then in the write-ahead log, and
// the log of another file is recognised before SQLite takes it for its own. It costs
// one page a batch.
const applicationMark = uint32('G')<<24 | uint32('N')<<16

// identify returns a file's application id and gives a new one its id.
func identify(ctx context.Context, db *sql.DB) (id uint32, err error) {
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil || id != 0 {
		return id, err
	}
	var b [2]byte
	rand.Read(b[:]) // never fails: it crashes the program where the system has no randomness
	id = applicationMark | uint32(binary.BigEndian.Uint16(b[:]))
	if err := writeIdentity(ctx, db, id); err != nil {
		return 0, err
	}
	// Into the file itself, where inspection looks for it.
	_, err = truncateWAL(ctx, db)
	return id, err
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// writeIdentity writes page 1 with the application id, even if it is there already.
func writeIdentity(ctx context.Context, e execer, id uint32) error {
	_, err := e.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", id))
	return err
}

// fileHeader is what inspection needs of a file's first page.
type fileHeader struct {
	wal         bool   // the file works with a write-ahead log
	application uint32 // 0: none yet
}

// parseHeader reads the header of a database file.
func parseHeader(page []byte) (fileHeader, error) {
	if len(page) < headerBytes || !bytes.HasPrefix(page, []byte(headerMagic)) {
		return fileHeader{}, errors.New("it does not begin like a database")
	}
	return fileHeader{
		wal:         page[atWriteMode] == 2,
		application: binary.BigEndian.Uint32(page[atApplication:]),
	}, nil
}

// readHeader reads the header of the database file at path.
func readHeader(path string) (fileHeader, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileHeader{}, err
	}
	defer f.Close()
	page := make([]byte, headerBytes)
	n, err := io.ReadFull(f, page)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fileHeader{}, err
	}
	return parseHeader(page[:n])
}

// walSum is the running checksum of a write-ahead log over its header and frames.
type walSum struct {
	order binary.ByteOrder
	a, b  uint32
}

// add goes on over p, whose length is a multiple of eight.
func (s *walSum) add(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		s.a += s.order.Uint32(p) + s.b
		s.b += s.order.Uint32(p[4:]) + s.a
	}
}

// holds tells whether the checksum is the one that stands at p.
func (s *walSum) holds(p []byte) bool {
	return binary.BigEndian.Uint32(p) == s.a && binary.BigEndian.Uint32(p[4:]) == s.b
}

// foreignWAL tells, in words, why a write-ahead log cannot be the one of a file with
// the given application id; empty when it may be. SQLite ends a write-ahead log at the
// first frame whose salts are not those of its header or whose checksum is wrong; so does
// this. A writer that is killed between the header of a frame and its page leaves one that
// holds what stood there before: any page of an earlier log.
func foreignWAL(path string, application uint32) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	header := make([]byte, walHeaderBytes)
	if _, err := io.ReadFull(f, header); err != nil {
		return "", nil // too short to hold anything; SQLite begins it anew
	}
	if binary.BigEndian.Uint32(header)&^1 != walMagic {
		return "it does not begin like a write-ahead log", nil
	}
	if page := binary.BigEndian.Uint32(header[8:]); page != pageSize {
		return fmt.Sprintf("its pages have %d bytes", page), nil
	}
	sum := walSum{order: binary.LittleEndian}
	if header[3]&1 != 0 {
		sum.order = binary.BigEndian
	}
	if sum.add(header[:24]); !sum.holds(header[24:]) {
		return "", nil // SQLite begins it anew
	}
	in, frame := bufio.NewReaderSize(f, 1<<16), make([]byte, frameBytes+pageSize)
	for {
		if _, err := io.ReadFull(in, frame); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return "", nil
			}
			return "", err
		}
		sum.add(frame[:8])
		sum.add(frame[frameBytes:])
		if !bytes.Equal(frame[8:16], header[16:24]) || !sum.holds(frame[16:]) {
			return "", nil
		}
		if binary.BigEndian.Uint32(frame) != 1 {
			continue
		}
		h, err := parseHeader(frame[frameBytes:])
		if err != nil || (application != 0 && h.application != application) {
			return "it belongs to another file", nil
		}
	}
}
