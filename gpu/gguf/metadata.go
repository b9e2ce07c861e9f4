package gguf

// Keys returns the metadata keys in file order (of the first part of a split file).
// The caller owns the slice.
func (f *File) Keys() []string {
	keys := make([]string, len(f.head.entries))
	for i, e := range f.head.entries {
		keys[i] = e.key
	}
	return keys
}

// Value returns the value of a key, for display.
func (f *File) Value(key string) (Value, bool) { return f.head.lookup(key) }

// Architecture returns general.architecture, "" when the file does not say.
func (f *File) Architecture() string {
	s, _ := f.String("general.architecture")
	return s
}

// Bool returns the truth value of a key; false, false when there is none of that type.
func (f *File) Bool(key string) (value, ok bool) {
	v, ok := f.head.lookup(key)
	if !ok || v.Type != Bool {
		return false, false
	}
	return v.raw[0] != 0, true
}

// Uint returns the integer of a key, of any width, unless it is negative.
func (f *File) Uint(key string) (uint64, bool) { return scalar(f, key, decodeUint) }

// Int returns the integer of a key, of any width, unless it is too large.
func (f *File) Int(key string) (int64, bool) { return scalar(f, key, decodeInt) }

// Float returns the number of a key, a float or an integer of any width.
func (f *File) Float(key string) (float64, bool) { return scalar(f, key, decodeFloat) }

// scalar decodes the number of a key; the zero value when it is not there or no T.
func scalar[T any](f *File, key string, decode func(ValueType, []byte) (T, bool)) (T, bool) {
	var zero T
	v, ok := f.head.lookup(key)
	if !ok {
		return zero, false
	}
	x, ok := decode(v.Type, v.raw)
	if !ok {
		return zero, false
	}
	return x, true
}

// String returns the text of a key, byte for byte: it need not be valid UTF-8.
func (f *File) String(key string) (string, bool) {
	v, ok := f.head.lookup(key)
	if !ok || v.Type != String {
		return "", false
	}
	return string(v.raw), true
}

// Strings returns the array of texts of a key. Each call decodes anew; the caller owns
// the slice.
func (f *File) Strings(key string) ([]string, bool) {
	v, ok := f.head.lookup(key)
	if !ok {
		return nil, false
	}
	return v.texts()
}

// Floats returns the array of numbers of a key, floats or integers of any width,
// rounded to float32. Each call decodes anew; the caller owns the slice.
func (f *File) Floats(key string) ([]float32, bool) {
	v, ok := f.head.lookup(key)
	if !ok {
		return nil, false
	}
	return elements(v, func(t ValueType, raw []byte) (float32, bool) {
		x, ok := decodeFloat(t, raw)
		return float32(x), ok
	})
}

// Ints returns the array of integers of a key, of any width, when all of them fit.
// Each call decodes anew; the caller owns the slice.
func (f *File) Ints(key string) ([]int64, bool) {
	v, ok := f.head.lookup(key)
	if !ok {
		return nil, false
	}
	return elements(v, decodeInt)
}

// Bools returns the array of truth values of a key. Each call decodes anew; the caller
// owns the slice.
func (f *File) Bools(key string) ([]bool, bool) {
	v, ok := f.head.lookup(key)
	if !ok {
		return nil, false
	}
	return elements(v, func(t ValueType, raw []byte) (bool, bool) { return raw[0] != 0, t == Bool })
}
