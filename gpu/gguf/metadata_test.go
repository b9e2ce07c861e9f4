package gguf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/gguf/gguftest"
)

// every holds a value of every type, scalars at their limits.
var every = gguftest.Model{KV: []gguftest.KV{
	{Key: "u8", Value: uint8(math.MaxUint8)},
	{Key: "i8", Value: int8(math.MinInt8)},
	{Key: "u16", Value: uint16(math.MaxUint16)},
	{Key: "i16", Value: int16(math.MinInt16)},
	{Key: "u32", Value: uint32(math.MaxUint32)},
	{Key: "i32", Value: int32(math.MinInt32)},
	{Key: "u64", Value: uint64(math.MaxUint64)},
	{Key: "i64", Value: int64(math.MinInt64)},
	{Key: "small", Value: uint64(7)},
	{Key: "f32", Value: float32(0.1)},
	{Key: "f64", Value: math.Pi},
	{Key: "true", Value: true},
	{Key: "false", Value: false},
	{Key: "text", Value: "ä\x00\xff\n"},
	{Key: "long", Value: strings.Repeat("ä", 100)},
	{Key: "[]u8", Value: []uint8{0, 255}},
	{Key: "[]i16", Value: []int16{-1, 1}},
	{Key: "[]u64", Value: []uint64{1, math.MaxUint64}},
	{Key: "[]i32", Value: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{Key: "[]f32", Value: []float32{0.5, -1}},
	{Key: "[]f64", Value: []float64{0.1}},
	{Key: "[]bool", Value: []bool{true, false}},
	{Key: "[]string", Value: []string{"a", "", "ä"}},
	{Key: "[]", Value: []string{}},
	{Key: "[][]i32", Value: [][]int32{{1}, {}}},
}}

// show prints what a getter returned, "-" when it has nothing.
func show[T any](v T, ok bool) string {
	if !ok {
		if !reflect.ValueOf(&v).Elem().IsZero() {
			return "not zero"
		}
		return "-"
	}
	return fmt.Sprintf("%v", v)
}

func TestScalarGetters(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		m := every
		m.Version = version
		f := open(t, save(t, encode(t, m)))
		if got := f.Version(); got != version {
			t.Errorf("version: got %d, want %d", got, version)
		}
		cases := []struct{ key, asUint, asInt, asFloat, asBool, asString string }{
			{"u8", "255", "255", "255", "-", "-"},
			{"i8", "-", "-128", "-128", "-", "-"},
			{"u16", "65535", "65535", "65535", "-", "-"},
			{"i16", "-", "-32768", "-32768", "-", "-"},
			{"u32", "4294967295", "4294967295", "4.294967295e+09", "-", "-"},
			{"i32", "-", "-2147483648", "-2.147483648e+09", "-", "-"},
			{"u64", "18446744073709551615", "-", "1.8446744073709552e+19", "-", "-"},
			{"i64", "-", "-9223372036854775808", "-9.223372036854776e+18", "-", "-"},
			{"small", "7", "7", "7", "-", "-"},
			{"f32", "-", "-", "0.10000000149011612", "-", "-"},
			{"f64", "-", "-", "3.141592653589793", "-", "-"},
			{"true", "-", "-", "-", "true", "-"},
			{"false", "-", "-", "-", "false", "-"},
			{"text", "-", "-", "-", "-", "ä\x00\xff\n"},
			{"[]u8", "-", "-", "-", "-", "-"},
			{"[][]i32", "-", "-", "-", "-", "-"},
			{"absent", "-", "-", "-", "-", "-"},
		}
		for _, c := range cases {
			for _, g := range []struct{ name, got, want string }{
				{"Uint", show(f.Uint(c.key)), c.asUint},
				{"Int", show(f.Int(c.key)), c.asInt},
				{"Float", show(f.Float(c.key)), c.asFloat},
				{"Bool", show(f.Bool(c.key)), c.asBool},
				{"String", show(f.String(c.key)), c.asString},
			} {
				if g.got != g.want {
					t.Errorf("v%d: %s(%q): got %s, want %s", version, g.name, c.key, g.got, g.want)
				}
			}
		}
	}
}

func TestArrayGetters(t *testing.T) {
	f := open(t, save(t, encode(t, every)))
	cases := []struct{ key, ints, floats, bools, strings string }{
		{"[]u8", "[0 255]", "[0 255]", "-", "-"},
		{"[]i16", "[-1 1]", "[-1 1]", "-", "-"},
		{"[]u64", "-", "[1 1.8446744e+19]", "-", "-"},
		{"[]f32", "-", "[0.5 -1]", "-", "-"},
		{"[]f64", "-", "[0.1]", "-", "-"},
		{"[]bool", "-", "-", "[true false]", "-"},
		{"[]string", "-", "-", "-", "[a  ä]"},
		{"[]", "-", "-", "-", "[]"},
		{"[][]i32", "-", "-", "-", "-"},
		{"u8", "-", "-", "-", "-"},
		{"text", "-", "-", "-", "-"},
		{"absent", "-", "-", "-", "-"},
	}
	for _, c := range cases {
		for _, g := range []struct{ name, got, want string }{
			{"Ints", show(f.Ints(c.key)), c.ints},
			{"Floats", show(f.Floats(c.key)), c.floats},
			{"Bools", show(f.Bools(c.key)), c.bools},
			{"Strings", show(f.Strings(c.key)), c.strings},
		} {
			if g.got != g.want {
				t.Errorf("%s(%q): got %s, want %s", g.name, c.key, g.got, g.want)
			}
		}
	}
}

func TestValueForDisplay(t *testing.T) {
	f := open(t, save(t, encode(t, every)))
	cases := []struct {
		key       string
		typ, elem ValueType
		n         int
		text      string
	}{
		{"u8", Uint8, Uint8, 1, "255"},
		{"i64", Int64, Int64, 1, "-9223372036854775808"},
		{"u64", Uint64, Uint64, 1, "18446744073709551615"},
		{"f32", Float32, Float32, 1, "0.1"},
		{"f64", Float64, Float64, 1, "3.141592653589793"},
		{"false", Bool, Bool, 1, "false"},
		{"text", String, String, 5, `"ä\x00\xff\n"`},
		{"long", String, String, 200, `"` + strings.Repeat("ä", 40) + `"… (200 bytes)`},
		{"[]bool", Array, Bool, 2, "[true, false]"},
		{"[]i32", Array, Int32, 10, "[0, 1, 2, 3, 4, 5, 6, 7, … 10 in all]"},
		{"[]string", Array, String, 3, `["a", "", "ä"]`},
		{"[]", Array, String, 0, "[]"},
		{"[][]i32", Array, Array, 2, "[2 arrays]"},
	}
	for _, c := range cases {
		v, ok := f.Value(c.key)
		if !ok {
			t.Fatalf("%s: not there", c.key)
		}
		if v.Type != c.typ || v.Elem != c.elem || v.Len != c.n {
			t.Errorf("%s: got %v, %v, %d, want %v, %v, %d", c.key, v.Type, v.Elem, v.Len, c.typ, c.elem, c.n)
		}
		if got := v.String(); got != c.text {
			t.Errorf("%s: got %s, want %s", c.key, got, c.text)
		}
	}
	if _, ok := f.Value("absent"); ok {
		t.Error("an absent key has a value")
	}
	var want []string
	for _, e := range every.KV {
		want = append(want, e.Key)
	}
	if got := f.Keys(); !slices.Equal(got, want) {
		t.Errorf("keys: got %q, want %q", got, want)
	}
}

// Versions 2 and 3 differ in nothing but the number.
func TestVersionsReadAlike(t *testing.T) {
	m := tiny()
	m.Version = 2
	two := open(t, save(t, encode(t, m)))
	m.Version = 3
	three := open(t, save(t, encode(t, m)))
	if got, want := two.Tensors(), three.Tensors(); !reflect.DeepEqual(got, want) {
		t.Errorf("tensors: got %v, want %v", got, want)
	}
	for _, x := range three.Tensors() {
		if got, want := data(t, two, x.Name), data(t, three, x.Name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", x.Name, got, want)
		}
	}
	if got, want := two.Architecture(), "llama"; got != want {
		t.Errorf("architecture: got %q, want %q", got, want)
	}
}

// BenchmarkVocabulary opens a file with 262,144 pieces, scores and types.
func BenchmarkVocabulary(b *testing.B) {
	const n = 262_144
	pieces, scores, types := make([]string, n), make([]float32, n), make([]int32, n)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("piece%d", i)
	}
	path := save(b, encode(b, gguftest.Model{KV: []gguftest.KV{
		{Key: "tokenizer.ggml.tokens", Value: pieces},
		{Key: "tokenizer.ggml.scores", Value: scores},
		{Key: "tokenizer.ggml.token_type", Value: types},
	}}))
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if got, _ := f.Strings("tokenizer.ggml.tokens"); len(got) != n || got[n-1] != pieces[n-1] {
			b.Fatal("wrong vocabulary")
		}
		f.Close()
	}
}

func TestFileType(t *testing.T) {
	key := func(v any) gguftest.Model {
		return gguftest.Model{KV: []gguftest.KV{{Key: "general.file_type", Value: v}}}
	}
	for want, m := range map[string]gguftest.Model{
		"F32": key(uint32(0)), "Q4_K_M": key(uint32(15)), "BF16": key(int32(32)),
		"-": {}, "- ": key(uint32(1024)), "-  ": key(uint32(4)), "-   ": key(int32(-1)), "-    ": key("Q4_0"), "-     ": key(uint32(99)),
	} {
		if got := show(open(t, save(t, encode(t, m))).FileType()); got != strings.TrimSpace(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
