package gguf

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/cputime"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// nest returns an array of depth arrays, the innermost of one u8.
func nest(b raw, depth int) raw {
	for range depth - 1 {
		b = b.u32(uint32(Array)).u64(1)
	}
	return b.u32(uint32(Uint8)).u64(1).u8(7)
}

// index begins a file with one tensor "t" of the given dimensions; its dimension count
// stands at byte 33, the dimensions from 37 on.
func index(dims ...uint64) raw {
	b := top(1, 0).str("t").u32(uint32(len(dims)))
	for _, d := range dims {
		b = b.u64(d)
	}
	return b
}

// two is a file with the tensors "t" and "u" of 16 floats at the given offsets.
func two(t, u uint64) raw {
	b := top(2, 0).str("t").u32(1).u64(16).u32(0).u64(t)
	return b.str("u").u32(1).u64(16).u32(0).u64(u).zeros(6 + 256)
}

// hostile lists files that must be refused, with the byte and field the error names.
var hostile = []struct {
	name   string
	file   raw
	offset int
	field  string
	fact   string
}{
	{"empty", raw{}, 0, "magic", "ends at byte 0"},
	{"three bytes", raw("GGU"), 0, "magic", "ends at byte 3"},
	{"only magic", raw("GGUF"), 4, "version", "needs 4 bytes, the file ends at byte 4"},
	{"other magic", raw("GGML").zeros(40), 0, "magic", `"GGML"`},
	{"no counts", raw("GGUF").u32(3), 8, "tensor count", "ends at byte 8"},
	{"no key count", raw("GGUF").u32(3).u64(0), 16, "key count", "ends at byte 16"},

	{"version 0", raw("GGUF").u32(0).zeros(16), 4, "version", "0 is not supported"},
	{"version 1", raw("GGUF").u32(1).u32(0).u32(1).u32(0).u32(8).u32(0), 4, "version", "1 is not supported"},
	{"version 4", raw("GGUF").u32(4).zeros(16), 4, "version", "4 is not supported"},
	{"big-endian", append(raw("GGUF"), 0, 0, 0, 3).zeros(16), 4, "version", "big-endian file (version 3)"},

	{"2^60 tensors", top(1<<60, 0), 8, "tensor count", "does not fit"},
	{"2^64-1 keys", top(0, math.MaxUint64), 16, "key count", "does not fit"},
	{"too many keys", top(0, maxKeys+1).zeros(13 * (maxKeys + 1)), 16, "key count", "at most 65536"},

	{"key length 2^63", top(0, 1).u64(1 << 63).zeros(64), 24, "key 0 length", "does not fit in the 64 bytes left of the file"},
	{"key length 2^64-1", top(0, 1).u64(math.MaxUint64).zeros(64), 24, "key 0 length", "does not fit"},
	{"key length 2^40", top(0, 1).u64(1 << 40).zeros(64), 24, "key 0 length", "does not fit"},
	{"key length 2^16", top(0, 1).u64(1 << 16).zeros(1 << 17), 24, "key 0 length", "at most 65535"},
	{"key twice", top(0, 2).str("k").u32(0).u8(1).str("k").u32(0).u8(1), 38, `key "k"`, "appears twice"},

	{"value type 13", oneKey(13).zeros(64), 33, `key "k": value type`, "13 is unknown"},
	{"value type 2^32-1", oneKey(math.MaxUint32).zeros(64), 33, `key "k": value type`, "unknown"},
	{"value cut off", oneKey(Uint64).u32(1), 37, `key "k": value`, "needs 8 bytes, the file ends at byte 41"},
	{"bool 2", oneKey(Bool).u8(2), 37, `key "k": value`, "2 is not a truth value"},
	{"string length 2^63", oneKey(String).u64(1 << 63).zeros(64), 37, `key "k": value length`, "does not fit"},
	{"string length 2^64-1", oneKey(String).u64(math.MaxUint64).zeros(64), 37, `key "k": value length`, "does not fit"},
	{"string length 2^40", oneKey(String).u64(1 << 40).zeros(64), 37, `key "k": value length`, "does not fit"},
	{"string one byte short", oneKey(String).u64(4).zeros(3), 37, `key "k": value length`, "4 does not fit in the 3 bytes"},

	{"array type 13", oneKey(Array).u32(13).u64(0), 37, `key "k": array type`, "13 is unknown"},
	{"array of 2^60 u8", oneKey(Array).u32(0).u64(1 << 60).zeros(64), 41, `key "k": array length`, "does not fit"},
	{"array of 2^61 u64", oneKey(Array).u32(10).u64(1 << 61).zeros(64), 41, `key "k": array length`, "does not fit"},
	{"array of 2^60 arrays", oneKey(Array).u32(9).u64(1 << 60).zeros(64), 41, `key "k": array length`, "does not fit"},
	{"array of 2^64-1 strings", oneKey(Array).u32(8).u64(math.MaxUint64).zeros(64), 41, `key "k": array length`, "does not fit"},
	{"array one short", oneKey(Array).u32(4).u64(3).zeros(11), 41, `key "k": array length`, "3 does not fit in the 11 bytes"},
	{"array string too long", oneKey(Array).u32(8).u64(2).str("ab").u64(9).zeros(8), 59, `key "k": element 1 length`, "9 does not fit"},
	{"array bool 2", oneKey(Array).u32(7).u64(3).u8(1).u8(0).u8(2), 51, `key "k": array`, "2 is not a truth value"},
	{"array nested too deep", nest(oneKey(Array), maxDepth+1), 37 + 12*maxDepth, `key "k": array type`, "nested more than 4 deep"},
	{"nested array of 2^60", oneKey(Array).u32(9).u64(1).u32(0).u64(1 << 60), 53, `key "k": array length`, "does not fit"},

	{"alignment 0", top(0, 1).str("general.alignment").u32(4).u32(0), 49, `key "general.alignment"`, "0 is not a power of two"},
	{"alignment 48", top(0, 1).str("general.alignment").u32(4).u32(48), 49, `key "general.alignment"`, "48 is not a power of two"},
	{"alignment 2^63", top(0, 1).str("general.alignment").u32(10).u64(1 << 63), 49, `key "general.alignment"`, "not a power of two up to"},
	{"alignment text", top(0, 1).str("general.alignment").u32(8).str("32"), 49, `key "general.alignment"`, "not a whole number"},
	{"alignment -32", top(0, 1).str("general.alignment").u32(5).u32(^uint32(31)), 49, `key "general.alignment"`, "-32 is not a whole number"},

	{"tensor name length 2^63", top(1, 0).u64(1 << 63).zeros(64), 24, "tensor 0: name length", "does not fit"},
	{"tensor name too long", top(1, 0).u64(2048).zeros(4096), 24, "tensor 0: name length", "at most 1024"},
	{"tensor twice", top(2, 0).str("t").u32(1).u64(1).u32(0).u64(0).str("t").u32(1).u64(1).u32(0).u64(0).zeros(64), 57, `tensor "t"`, "appears twice"},
	{"5 dimensions", index(1, 1, 1, 1, 1).u32(0).u64(0).zeros(64), 33, `tensor "t": dimension count`, "5, at most 4"},
	{"2^32-1 dimensions", top(1, 0).str("t").u32(math.MaxUint32).zeros(64), 33, `tensor "t": dimension count`, "at most 4"},
	{"dimension 0", index(4, 0).u32(0).u64(0).zeros(64), 45, `tensor "t": dimension 1`, "0 is zero"},
	{"dimension 2^63", index(1 << 63).u32(0).u64(0).zeros(64), 37, `tensor "t": dimension 0`, "too large"},
	{"dimensions 2^32 × 2^32", index(1<<32, 1<<32).u32(0).u64(0).zeros(64), 45, `tensor "t": dimension 1`, "too large"},
	{"bytes overflow", index(1<<61, 2).u32(0).u64(0).zeros(64), 33, `tensor "t": dimensions`, "too large"},
	{"row bytes overflow", index(1 << 62).u32(28).u64(0).zeros(64), 33, `tensor "t": dimensions`, "too large"},
	{"type 42", index(32).u32(42).u64(0).zeros(128), 45, `tensor "t": type`, "type 42 is not supported, supported types are F32, F16, Q4_0"},
	{"type 99", index(32).u32(99).u64(0).zeros(128), 45, `tensor "t": type`, "type 99 is not supported"},
	{"type 2^31", index(32).u32(1 << 31).u64(0).zeros(128), 45, `tensor "t": type`, "type 2147483648 is not supported"},
	{"type removed", index(32).u32(4).u64(0).zeros(128), 45, `tensor "t": type`, "type 4 is not supported"},
	{"part of a block", index(33).u32(8).u64(0).zeros(128), 45, `tensor "t": type`, "rows of 33 values do not divide into Q8_0 blocks of 32"},
	{"offset unaligned", index(1).u32(0).u64(16).zeros(128), 49, `tensor "t": offset`, "16 is not a multiple of the alignment 32"},
	{"offset 2^63", index(1).u32(0).u64(1 << 63).zeros(128), 49, `tensor "t": offset`, "too large"},
	{"offset 2^63-32", index(1).u32(0).u64(1<<63 - 32).zeros(128), 49, `tensor "t": offset`, "do not fit"},
	{"data outside", index(1).u32(0).u64(32).zeros(7 + 32), 49, `tensor "t": offset`, "4 bytes at byte 32 of the data do not fit, data begins at byte 64 and the file has 96"},
	{"data one byte short", index(1).u32(0).u64(0).zeros(7 + 3), 49, `tensor "t": offset`, "do not fit"},
	{"data missing", index(1).u32(0).u64(0), 49, `tensor "t": offset`, "the file has 57"},
	{"data shared", two(0, 0), 82, `tensor "u": offset`, `begins at byte 96, inside tensor "t", which ends at byte 160`},
	{"data overlapping", two(0, 32), 82, `tensor "u": offset`, `begins at byte 128, inside tensor "t"`},
	{"data overlapping, out of order", two(32, 0), 49, `tensor "t": offset`, `begins at byte 128, inside tensor "u"`},
	{"index cut off", index(1).u32(0), 49, `tensor "t": offset`, "needs 8 bytes, the file ends at byte 49"},
}

// A hostile file is refused at its byte and field, at once and without memory.
func TestHostile(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) { refuse(t, c.file, c.offset, c.field, c.fact) })
	}
}

func refuse(t *testing.T, file raw, offset int, field, fact string) {
	t.Helper()
	path := save(t, file)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cputime.Used()
	_, err := Open(path)
	took := cputime.Used() - start
	runtime.ReadMemStats(&after)
	for n := 0; n < 3 && took > 100*time.Millisecond; n++ { // the garbage collector may be at work
		start = cputime.Used()
		_, err = Open(path)
		took = min(took, cputime.Used()-start)
	}
	refused(t, err, fmt.Sprintf("gguf: %s: byte %d, %s: ", path, offset, field), fact)
	var format *FormatError
	if !errors.As(err, &format) {
		t.Fatalf("got error of type %T, want *FormatError", err)
	}
	if format.Offset != int64(offset) || format.Field != field {
		t.Errorf("got byte %d, field %q, want byte %d, field %q", format.Offset, format.Field, offset, field)
	}
	if took > 100*time.Millisecond {
		t.Errorf("took %v, want at most 100 ms", took)
	}
	// Some of the files are 1 MiB themselves; the claimed lengths start at 2³².
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("allocated %d bytes, want at most 8 MiB", got)
	}
}

// The partners of the table: files just inside each limit load.
func TestNearlyHostileLoads(t *testing.T) {
	cases := []struct {
		name string
		file raw
	}{
		{"nothing in it", top(0, 0)},
		{"version 2", raw("GGUF").u32(2).zeros(16)},
		{"two keys", top(0, 2).str("k").u32(0).u8(1).str("l").u32(0).u8(1)},
		{"longest key", top(0, 1).str(strings.Repeat("k", maxKeyLen)).u32(0).u8(1)},
		{"empty key and text", top(0, 1).str("").u32(8).str("")},
		{"string to the last byte", oneKey(String).u64(3).zeros(3)},
		{"array to the last byte", oneKey(Array).u32(4).u64(3).zeros(12)},
		{"empty array", oneKey(Array).u32(8).u64(0)},
		{"array of empty arrays", oneKey(Array).u32(9).u64(2).u32(8).u64(0).u32(0).u64(0)},
		{"deepest array", nest(oneKey(Array), maxDepth)},
		{"bool array", oneKey(Array).u32(7).u64(2).u8(1).u8(0)},
		{"alignment 1", top(0, 1).str("general.alignment").u32(4).u32(1)},
		{"alignment 64 as i64", top(0, 1).str("general.alignment").u32(11).u64(64)},
		{"scalar tensor", index().u32(0).u64(0).zeros(15 + 4)},
		{"4 dimensions", index(1, 1, 1, 1).u32(0).u64(0).zeros(15 + 4)},
		{"data to the last byte", index(1).u32(0).u64(0).zeros(7 + 4)},
		{"data at the second place", index(1).u32(0).u64(32).zeros(7 + 36)},
		{"whole block", index(32).u32(8).u64(0).zeros(7 + 34)},
		{"integers", index(2).u32(26).u64(0).zeros(7 + 8)},
		{"two tensors side by side", two(0, 64)},
		{"the second first", two(64, 0)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { open(t, save(t, c.file)) })
	}
}

// Every prefix of a valid file is refused, except those that only lack the padding
// after the last tensor.
func TestEveryTruncation(t *testing.T) {
	m := tiny()
	b := encode(t, m)
	path := save(t, b)
	f := open(t, path)
	last, _ := f.Tensor("d")
	end := last.Offset + last.Bytes
	for n := range b {
		_, err := Open(save(t, b[:n]))
		if int64(n) < end {
			refused(t, err, "gguf: ", "byte")
		} else if err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A sparse file may be huge: what it claims can then be there. The header is bounded.
func TestHugeSparseFile(t *testing.T) {
	cases := []struct {
		name string
		head raw
		text string
	}{
		{"string of 2^32", oneKey(String).u64(1 << 32), "does not fit in the 134217683 bytes left of the largest header allowed"},
		{"array of 2^32", oneKey(Array).u32(0).u64(1 << 32), "does not fit"},
		{"2^28 strings", oneKey(Array).u32(8).u64(1 << 28), "does not fit"},
		{"2^30 tensors", top(1<<30, 0), "does not fit"},
		{"2^20 tensors", top(1<<20, 0), "at most 262144 are allowed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := save(t, c.head)
			grow(t, path, 1<<36)
			_, err := Open(path)
			refused(t, err, c.text)
		})
	}
	t.Run("large data loads", func(t *testing.T) {
		path := save(t, index(1<<26, 4).u32(uint32(tensor.F32)).u64(0))
		grow(t, path, 1<<36)
		f := open(t, path)
		x, _ := f.Tensor("t")
		if got, want := x.Bytes, int64(1<<30); got != want {
			t.Errorf("tensor has %d bytes, want %d", got, want)
		}
	})
}

// The writer refuses what it cannot write rightly.
func TestWriterRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		m    gguftest.Model
		text string
	}{
		{"int", gguftest.Model{KV: []gguftest.KV{{Key: "k", Value: 1}}}, "no GGUF type for int"},
		{"nil", gguftest.Model{KV: []gguftest.KV{{Key: "k"}}}, "no value"},
		{"slice of int", gguftest.Model{KV: []gguftest.KV{{Key: "k", Value: []int{1}}}}, "no GGUF type for int"},
		{"short data", gguftest.Model{Tensors: []gguftest.Tensor{{Name: "t", Type: tensor.F32, Dims: []int{2}, Data: []byte{1}}}}, "are 8 bytes, got 1"},
		{"part of a block", gguftest.Model{Tensors: []gguftest.Tensor{{Name: "t", Type: tensor.Q8_0, Dims: []int{2}}}}, "multiple"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := gguftest.Encode(c.m)
			refused(t, err, c.text)
		})
	}
}
