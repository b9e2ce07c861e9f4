package jsontext

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	many := `{"":0` + func() string {
		var b strings.Builder
		for i := range MaxNames {
			b.WriteString(`,"` + strings.Repeat("x", 1+i%3) + string(rune('a'+i%26)))
			b.WriteString(json.Number(itoa(i)).String() + `":0`)
		}
		return b.String()
	}() + "}"
	tests := []struct {
		name, text string
		fault      Fault
		offset     int
	}{
		{"nothing", "", FaultSyntax, 0},
		{"blank", " \n", FaultSyntax, 2},
		{"two values", "{}{}", FaultSyntax, 2},
		{"no value", `{"a":}`, FaultSyntax, 5},
		{"no name", `{:`, FaultSyntax, 1},
		{"trailing comma", `[1,]`, FaultSyntax, 3},
		{"cut string", `"ab`, FaultSyntax, 3},
		{"cut escape", `"\u12`, FaultSyntax, 1},
		{"bad escape", `"\x"`, FaultSyntax, 1},
		{"raw newline", "\"a\nb\"", FaultSyntax, 2},
		{"leading zero", `01`, FaultSyntax, 0},
		{"plus", `+1`, FaultSyntax, 0},
		{"no fraction", `1.`, FaultSyntax, 2},
		{"no exponent", `1e`, FaultSyntax, 2},
		{"half a word", `nul`, FaultSyntax, 0},
		{"byte order mark", "\ufeff1", FaultSyntax, 0},
		{"latin 1", "\"\xC4\xE3\"", FaultUTF8, 1},
		{"surrogate in UTF-8", "\"\xED\xA0\x80\"", FaultUTF8, 1},
		{"equal names", `{"a":1,"b":2,"a":3}`, FaultDuplicate, 13},
		{"equal names, escaped", `{"a":1,"\u0061":3}`, FaultDuplicate, 7},
		{"equal names inside", `[{"x":{"y":1,"y":2}}]`, FaultDuplicate, 13},
		{"too deep", deep, FaultLimit, MaxDepth},
		{"too many names", many, FaultLimit, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Fault != tt.fault || tt.offset >= 0 && e.Offset != tt.offset {
				t.Errorf("fault %d at %d, want %d at %d: %v", e.Fault, e.Offset, tt.fault, tt.offset, err)
			}
		})
	}
}

func itoa(i int) string {
	b, _ := json.Marshal(i)
	return string(b)
}

// Names that differ only in which lone surrogate they hold are different.
func TestLoneSurrogates(t *testing.T) {
	v, err := Parse([]byte(`{"\ud800":1,"\udc00":2,"\ud83d\ude00":"\ud83d\ude00","x":"a\ud800b","y":"\ud800\u0041"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range v.Members() {
		switch name {
		case "😀":
			if s, err := e.Text(); s != "😀" || err != nil {
				t.Errorf("%q, %v", s, err)
			}
		case "x", "y":
			if _, err := e.Text(); !errors.Is(err, ErrSurrogate) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestInt(t *testing.T) {
	tests := []struct {
		text  string
		n     int64
		whole Whole
	}{
		{"0", 0, IsInt}, {"-0", 0, IsInt}, {"0.0", 0, IsInt}, {"0e99999999999999999999", 0, IsInt}, {"8", 8, IsInt}, {"8.0", 8, IsInt},
		{"8e0", 8, IsInt}, {"1e2", 100, IsInt}, {"80e-1", 8, IsInt}, {"0.8e1", 8, IsInt}, {"0.08E+2", 8, IsInt}, {"-12.50e1", -125, IsInt},
		{"8.5", 0, Fraction}, {"1e-1", 0, Fraction}, {"1e-99999999999999999999", 0, Fraction}, {"12345678901234567890.5", 0, Fraction},
		{"9007199254740993", 9007199254740993, IsInt}, {"9007199254740993.000", 9007199254740993, IsInt},
		{"9223372036854775807", math.MaxInt64, IsInt}, {"9223372036854775808", math.MaxInt64, TooLarge}, {"92233720368547758070e-1", math.MaxInt64, IsInt},
		{"-9223372036854775808", math.MinInt64, IsInt}, {"-9223372036854775809", math.MinInt64, TooSmall},
		{"1e18", 1e18, IsInt}, {"1e19", math.MaxInt64, TooLarge}, {"1e400", math.MaxInt64, TooLarge}, {"-1e99999999999999999999", math.MinInt64, TooSmall},
		{"18446744073709551616", math.MaxInt64, TooLarge}, {"99999999999999999999", math.MaxInt64, TooLarge},
	}
	for _, tt := range tests {
		v, err := Parse([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if n, whole := v.Int(); whole != tt.whole || whole != Fraction && n != tt.n {
			t.Errorf("%s: %d, %d, want %d, %d", tt.text, n, whole, tt.n, tt.whole)
		}
	}
}

func TestFloat(t *testing.T) {
	for text, want := range map[string]float64{"1.5": 1.5, "-0": 0, "1e-999": 0, "0.1": 0.1, "1e308": 1e308} {
		v, _ := Parse([]byte(text))
		if f, ok := v.Float(); !ok || f != want {
			t.Errorf("%s: %v, %v", text, f, ok)
		}
	}
	for _, text := range []string{"1e309", "-1e999"} {
		v, _ := Parse([]byte(text))
		if f, ok := v.Float(); ok {
			t.Errorf("%s is %v", text, f)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string][]byte{"[]": nil, "[0,255]": {0, 255}, " [ 1.0 , 2e0 ] ": {1, 2}} {
		v, _ := Parse([]byte(text))
		if got, ok := v.Bytes(); !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"[256]", "[-1]", "[1.5]", `["1"]`, "[null]", "[[1]]", "1", "{}"} {
		v, _ := Parse([]byte(text))
		if got, ok := v.Bytes(); ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// same tells whether a value reads as what encoding/json made of the same text.
func same(v Value, want any) bool {
	switch want := want.(type) {
	case nil:
		return v.Kind() == Null && !v.Present()
	case bool:
		return v.Kind() == Bool && v.True() == want
	case json.Number:
		return v.Kind() == Number && string(v.Raw()) == want.String()
	case string:
		s, err := v.Text()
		return v.Kind() == String && (err == ErrSurrogate && strings.ContainsRune(want, utf8.RuneError) || err == nil && s == want)
	case []any:
		n := 0
		for i, e := range v.Elements() {
			if i != n || i >= len(want) || !same(e, want[i]) {
				return false
			}
			n++
		}
		return v.Kind() == Array && n == len(want)
	case map[string]any:
		n := 0
		for name, e := range v.Members() {
			n++
			w, ok := want[name]
			if !utf8.ValidString(name) {
				continue // a lone surrogate, which encoding/json replaces
			}
			if !ok || !same(e, w) {
				return false
			}
		}
		return v.Kind() == Object && (n == len(want) || n > len(want) && lone(v))
	}
	return false
}

func lone(v Value) bool {
	for name := range v.Members() {
		if !utf8.ValidString(name) {
			return true
		}
	}
	return false
}

// FuzzParse holds Parse against encoding/json: what we take it takes and reads the
// same; what it takes and we refuse has one of the faults it overlooks.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,null,true],"b":"\u00e9\ud83d\ude00\/"}`, `[]`, `""`, `-0`, ` {"a" : {"a":1} } `, "\"\xff\"", `{"a":1,"a":2}`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(text) {
				t.Fatalf("error %v", err)
			}
			if e.Fault == FaultSyntax && json.Valid(text) {
				t.Errorf("refused: %v", err)
			}
			return
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if !same(v, want) {
			t.Errorf("read differently than %#v", want)
		}
		if v.Kind() == Number {
			v.Int()
			v.Float()
		}
		v.Bytes()
	})
}
