package tensor

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Shape of the golden matrices.
const goldenRows, goldenCols = 128, 256

// readGolden returns the raw bytes of a type's golden matrix and its values.
func readGolden(t *testing.T, typ Type) (raw []byte, want []float32) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", typ.String()+".bin.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	rowBytes, err := RowBytes(typ, goldenCols)
	if err != nil {
		t.Fatal(err)
	}
	n := rowBytes * goldenRows
	if got, want := len(all), n+4*goldenRows*goldenCols; got != want {
		t.Fatalf("golden file has %d bytes, want %d", got, want)
	}
	want = make([]float32, goldenRows*goldenCols)
	for i := range want {
		want[i] = math.Float32frombits(binary.LittleEndian.Uint32(all[n+4*i:]))
	}
	return all[:n], want
}

// firstDifference returns the index of the first value whose bits differ, or -1.
func firstDifference(got, want []float32) int {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return i
		}
	}
	return -1
}

func TestDequantizeGolden(t *testing.T) {
	for _, typ := range Types() {
		t.Run(typ.String(), func(t *testing.T) {
			raw, want := readGolden(t, typ)
			got := make([]float32, len(want))
			if err := Dequantize(typ, got, raw); err != nil {
				t.Fatal(err)
			}
			if i := firstDifference(got, want); i >= 0 {
				t.Errorf("row %d, column %d: got %v (%#08x), want %v (%#08x)", i/goldenCols, i%goldenCols,
					got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
			}
			// The comparison can fail: a changed bit of the source is seen.
			raw = bytes.Clone(raw)
			raw[len(raw)/2+1] ^= 1
			if err := Dequantize(typ, got, raw); err != nil {
				t.Fatal(err)
			}
			if firstDifference(got, want) < 0 {
				t.Error("a changed source bit changed no value")
			}
		})
	}
}

// A single row, and a single block, read the same as the whole matrix.
func TestDequantizeParts(t *testing.T) {
	for _, typ := range Types() {
		t.Run(typ.String(), func(t *testing.T) {
			raw, want := readGolden(t, typ)
			size, n := typ.BlockSize(), typ.BlockBytes()
			got := make([]float32, size)
			last := len(want)/size - 1
			if err := Dequantize(typ, got, raw[last*n:]); err != nil {
				t.Fatal(err)
			}
			if i := firstDifference(got, want[last*size:]); i >= 0 {
				t.Errorf("last block, value %d: got %v, want %v", i, got[i], want[last*size+i])
			}
		})
	}
}

func TestDequantizeRefuses(t *testing.T) {
	for _, typ := range Types() {
		t.Run(typ.String(), func(t *testing.T) {
			size, n := typ.BlockSize(), typ.BlockBytes()
			cases := []struct {
				name       string
				dst, src   int
				wantInText string // empty: accepted
			}{
				{"exact", 2 * size, 2 * n, ""},
				{"none", 0, 0, ""},
				{"truncated", 2 * size, 2*n - 1, "bytes, got"},
				{"too long", 2 * size, 2*n + 1, "bytes, got"},
				{"one block short", 2 * size, n, "bytes, got"},
				{"no bytes", size, 0, "bytes, got"},
			}
			if size > 1 {
				cases = append(cases, struct {
					name       string
					dst, src   int
					wantInText string
				}{"part of a block", size + 1, n, "not a multiple"})
			}
			for _, c := range cases {
				err := Dequantize(typ, make([]float32, c.dst), make([]byte, c.src))
				switch {
				case c.wantInText == "" && err != nil:
					t.Errorf("%s: %v", c.name, err)
				case c.wantInText != "" && (err == nil || !strings.Contains(err.Error(), c.wantInText)):
					t.Errorf("%s: got error %v, want one with %q", c.name, err, c.wantInText)
				}
			}
		})
	}
}

func TestDequantizeRefusesOtherTypes(t *testing.T) {
	for _, typ := range []Type{I8, I16, I32, I64, F64, 4, 9, 15, 41, 42, 99, 1 << 31, math.MaxUint32} {
		err := Dequantize(typ, make([]float32, 256), make([]byte, 256*8))
		if err == nil || !strings.Contains(err.Error(), typ.String()) || !strings.Contains(err.Error(), "Q4_K") {
			t.Errorf("%v: got error %v, want one that names the type and the supported ones", typ, err)
		}
	}
}

func TestTypes(t *testing.T) {
	cases := []struct {
		typ             Type
		name            string
		size, bytes     int
		known, dequants bool
	}{
		{F32, "F32", 1, 4, true, true},
		{BF16, "BF16", 1, 2, true, true},
		{Q4_K, "Q4_K", 256, 144, true, true},
		{MXFP4, "MXFP4", 32, 17, true, true},
		{I64, "I64", 1, 8, true, false},
		{5, "type 5", 0, 0, false, false},
		{42, "type 42", 0, 0, false, false},
		{1 << 31, "type 2147483648", 0, 0, false, false},
	}
	for _, c := range cases {
		if got := c.typ.String(); got != c.name {
			t.Errorf("%d: name: got %q, want %q", uint32(c.typ), got, c.name)
		}
		if got := c.typ.BlockSize(); got != c.size {
			t.Errorf("%v: block size: got %d, want %d", c.typ, got, c.size)
		}
		if got := c.typ.BlockBytes(); got != c.bytes {
			t.Errorf("%v: block bytes: got %d, want %d", c.typ, got, c.bytes)
		}
		if got := c.typ.Known(); got != c.known {
			t.Errorf("%v: known: got %v, want %v", c.typ, got, c.known)
		}
		if got := c.typ.Dequantizable(); got != c.dequants {
			t.Errorf("%v: dequantisable: got %v, want %v", c.typ, got, c.dequants)
		}
	}
	if got, want := len(Types()), 26; got != want {
		t.Errorf("types: got %d, want %d", got, want)
	}
}

func TestRowBytes(t *testing.T) {
	cases := []struct {
		typ    Type
		n      int
		want   int
		refuse string
	}{
		{Q4_K, 512, 288, ""},
		{F16, 3, 6, ""},
		{Q8_0, 0, 0, ""},
		{Q8_0, 33, 0, "multiple"},
		{Q8_0, -32, 0, "multiple"},
		{F64, math.MaxInt, 0, "too long"},
		{F64, math.MaxInt / 8, math.MaxInt / 8 * 8, ""},
		{99, 32, 0, "unknown type 99"},
	}
	for _, c := range cases {
		got, err := RowBytes(c.typ, c.n)
		if got != c.want {
			t.Errorf("%v × %d: got %d, want %d", c.typ, c.n, got, c.want)
		}
		if (err != nil) != (c.refuse != "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("%v × %d: got error %v, want %q", c.typ, c.n, err, c.refuse)
		}
	}
}

// FuzzDequantize shows that no bytes and no lengths make a decoder panic, and that a
// refused call leaves dst alone.
func FuzzDequantize(f *testing.F) {
	for _, typ := range Types() {
		f.Add(uint32(typ), typ.BlockSize(), bytes.Repeat([]byte{0xff}, typ.BlockBytes()))
		f.Add(uint32(typ), typ.BlockSize(), bytes.Repeat([]byte{0x80}, typ.BlockBytes()-1))
	}
	f.Add(uint32(99), 1, []byte{1})
	f.Fuzz(func(t *testing.T, typ uint32, n int, src []byte) {
		if n < 0 || n > 4096 {
			return
		}
		dst := make([]float32, n)
		for i := range dst {
			dst[i] = 42
		}
		if err := Dequantize(Type(typ), dst, src); err != nil {
			for i, v := range dst {
				if v != 42 {
					t.Fatalf("refused (%v), but value %d was written", err, i)
				}
			}
		}
	})
}
