package abi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Types of JSON Schema, as bits.
const (
	typeNull = 1 << iota
	typeBool
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
)

var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// Schema is the part of JSON Schema 2020-12 that ABI.md names. It is not changed after
// ParseSchema and safe for concurrent use.
type Schema struct {
	raw json.RawMessage

	types      int // 0: any
	properties map[string]*Schema
	required   []string
	closed     bool // additionalProperties: false
	enum       []any
	constant   any
	isConst    bool
	bounds     []bound
	length     [2]int // of a string in characters
	pattern    *regexp.Regexp
	program    int // instructions of the pattern, at most
	items      *Schema
	count      [2]int // of an array
	other      any    // default
	hasDefault bool
	size       int // of the default as JSON
	listed     int // of enum and const as JSON: what comparing a value with them may take
}

// bound is one of the four keywords that bound a number.
type bound struct {
	keyword string
	limit   float64
	ok      func(v, limit float64) bool
}

var boundKeywords = []bound{
	{"minimum", 0, func(v, l float64) bool { return v >= l }},
	{"maximum", 0, func(v, l float64) bool { return v <= l }},
	{"exclusiveMinimum", 0, func(v, l float64) bool { return v > l }},
	{"exclusiveMaximum", 0, func(v, l float64) bool { return v < l }},
}

const maxCount = 1 << 30

// ParseSchema reads a schema.
func ParseSchema(b []byte) (*Schema, error) {
	v, err := ParseJSON(b)
	if err != nil {
		return nil, fmt.Errorf("abi: schema: %w", err)
	}
	s, err := parseSchema(v, "", newBudget())
	if err != nil {
		return nil, fmt.Errorf("abi: schema: %w", err)
	}
	return s, nil
}

// Raw is the schema as JSON, for forms. It must not be changed.
func (s *Schema) Raw() json.RawMessage { return s.raw }

func parseSchema(v any, at string, b *budget) (*Schema, error) {
	o, err := object(v, at)
	if err != nil {
		return nil, err
	}
	s := &Schema{}
	if s.raw, err = json.Marshal(v); err != nil {
		return nil, faultf(at, "%v", err)
	}
	s.parseTypes(o)
	s.parseObject(o, b)
	s.parseNumbers(o)
	s.length = [2]int{o.int("minLength", 0, 0, maxCount), o.int("maxLength", maxCount, 0, maxCount)}
	s.count = [2]int{o.int("minItems", 0, 0, maxCount), o.int("maxItems", maxCount, 0, maxCount)}
	s.parsePattern(o, b)
	if items, ok := o.take("items"); ok {
		s.items, err = parseSchema(items, step(at, "items"), b)
		o.keep(err)
	}
	s.enum = o.list("enum", 1024)
	s.constant, s.isConst = o.take("const")
	if s.isConst || len(s.enum) > 0 {
		s.listed = len(show(s.enum)) + len(show(s.constant))
	}
	o.text("title", 200)
	o.text("description", 8<<10)
	s.other, s.hasDefault = o.take("default")
	if err := o.done(); err != nil {
		return nil, err
	}
	if s.hasDefault {
		b.defaults = maxDefaults
		if s.other, err = s.check(s.other, &place{text: step(at, "default"), index: -1}, b); err != nil {
			return nil, err
		}
		whole, err := json.Marshal(s.other)
		if err != nil {
			return nil, faultf(at, "%v", err)
		}
		s.size = len(whole)
	}
	return s, nil
}

func (s *Schema) parseTypes(o *members) {
	v, ok := o.take("type")
	if !ok {
		return
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, t := range list {
		name, _ := t.(string)
		at := slices.Index(typeNames, name)
		if at < 0 {
			o.fail("type", "is not a type, nor a list of types")
			return
		}
		s.types |= 1 << at
	}
	if s.types == 0 {
		o.fail("type", "is empty")
	}
}

func (s *Schema) parseObject(o *members, b *budget) {
	if v, ok := o.take("properties"); ok {
		at := step(o.at, "properties")
		m, isObject := v.(map[string]any)
		if !isObject {
			o.fail("properties", "is not an object")
		}
		s.properties = make(map[string]*Schema, len(m))
		for _, name := range sortedNames(m) {
			p, err := parseSchema(m[name], step(at, name), b)
			o.keep(err)
			s.properties[name] = p
		}
	}
	for i, v := range o.list("required", 1024) {
		name, ok := v.(string)
		if !ok {
			o.failAt("required", i, "is not a string")
		}
		s.required = append(s.required, name)
	}
	if v, ok := o.take("additionalProperties"); ok {
		open, isBool := v.(bool)
		if !isBool {
			o.fail("additionalProperties", "is not true or false")
		}
		s.closed = !open
	}
}

func (s *Schema) parseNumbers(o *members) {
	for _, b := range boundKeywords {
		v, ok := o.take(b.keyword)
		if !ok {
			continue
		}
		if b.limit, ok = number(v); !ok {
			o.fail(b.keyword, "is not a number")
		}
		s.bounds = append(s.bounds, b)
	}
}

// Fill checks a configuration (nil counts as {}) and returns it with its defaults, names
// in order. An error is a *Fault whose pointer begins at the configuration.
func (s *Schema) Fill(config []byte) (json.RawMessage, error) {
	if len(config) == 0 {
		config = []byte("{}")
	}
	v, err := ParseJSON(config)
	if err != nil {
		return nil, err
	}
	if v, err = s.checked(v, ""); err != nil {
		return nil, err
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil, faultf("", "%v", err)
	}
	return out, nil
}

// What one check may take. Arrays in the defaults of arrays multiply, and so do patterns,
// lists of values and members with the elements that are held against them.
const (
	maxDefaults = 1 << 20 // bytes of JSON that are filled in
	maxWork     = 1 << 24 // bytes that are compared, times the instructions of patterns
)

// budget is what is left of a check, and of the patterns of a schema that is being read.
type budget struct{ defaults, work, programs int }

func newBudget() *budget { return &budget{maxDefaults, maxWork, maxPatterns} }

// spend takes work; false where there is not enough.
func (b *budget) spend(work int) bool {
	b.work -= min(work, maxWork+1)
	return b.work >= 0
}

// checked returns a value with its defaults.
func (s *Schema) checked(v any, at string) (any, error) {
	return s.check(v, &place{text: at, index: -1}, newBudget())
}

// check is checked within a budget.
func (s *Schema) check(v any, at *place, b *budget) (any, error) {
	if !b.spend(s.listed) {
		return nil, overworked(at)
	}
	if have := typeOf(v); s.types != 0 && s.types&have == 0 {
		return nil, faultf(at.pointer(), "is not %s", s.typeNames())
	}
	if s.isConst && !equal(v, s.constant) {
		return nil, faultf(at.pointer(), "is not %s", show(s.constant))
	}
	if s.enum != nil && !slices.ContainsFunc(s.enum, func(e any) bool { return equal(e, v) }) {
		return nil, faultf(at.pointer(), "is not one of %s", show(s.enum))
	}
	switch t := v.(type) {
	case json.Number:
		f, ok := number(t)
		if !ok {
			return nil, faultf(at.pointer(), "%s is out of the range of numbers", t)
		}
		for _, n := range s.bounds {
			if !n.ok(f, n.limit) {
				return nil, faultf(at.pointer(), "%s breaks %s %v", t, n.keyword, n.limit)
			}
		}
	case string:
		if n := utf8.RuneCountInString(t); n < s.length[0] || n > s.length[1] {
			return nil, faultf(at.pointer(), "has %d characters, allowed are %s", n, span(s.length))
		}
		if s.pattern != nil && !b.spend(s.program*(len(t)+1)) {
			return nil, overworked(at)
		}
		if s.pattern != nil && !s.pattern.MatchString(t) {
			return nil, faultf(at.pointer(), "does not match %s", s.pattern)
		}
	case []any:
		return s.checkArray(t, at, b)
	case map[string]any:
		return s.checkObject(t, at, b)
	}
	return v, nil
}

func (s *Schema) checkArray(list []any, at *place, b *budget) (any, error) {
	if n := len(list); n < s.count[0] || n > s.count[1] {
		return nil, faultf(at.pointer(), "has %d elements, allowed are %s", n, span(s.count))
	}
	if s.items == nil {
		return list, nil
	}
	out, here := make([]any, len(list)), &place{up: at}
	for i, v := range list {
		here.index = i
		var err error
		if out[i], err = s.items.check(v, here, b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Schema) checkObject(m map[string]any, at *place, b *budget) (any, error) {
	if !b.spend(8 * (len(s.properties) + len(s.required))) {
		return nil, overworked(at)
	}
	out, here := make(map[string]any, len(m)), &place{up: at, index: -1}
	for _, name := range sortedNames(m) {
		here.text = name
		p, known := s.properties[name]
		switch {
		case known:
			v, err := p.check(m[name], here, b)
			if err != nil {
				return nil, err
			}
			out[name] = v
		case s.closed:
			return nil, faultf(here.pointer(), "is not known")
		default:
			out[name] = m[name]
		}
	}
	for name, p := range s.properties {
		if _, have := out[name]; !have && p.hasDefault {
			if b.defaults -= p.size; b.defaults < 0 {
				return nil, faultf(at.pointer(), "its defaults are more than %d bytes", maxDefaults)
			}
			out[name] = p.other
		}
	}
	for _, name := range s.required {
		here.text = name
		if _, have := out[name]; !have {
			return nil, faultf(here.pointer(), "is missing")
		}
	}
	return out, nil
}

func overworked(at *place) error {
	return faultf(at.pointer(), "comparing it and what is before it takes more than %d steps", maxWork)
}

func typeOf(v any) int {
	switch t := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBool
	case json.Number:
		if f, ok := number(t); ok && f == float64(int64(f)) {
			return typeInteger | typeNumber
		}
		return typeNumber
	case string:
		return typeString
	case []any:
		return typeArray
	}
	return typeObject
}

func (s *Schema) typeNames() string {
	var out []string
	for i, n := range typeNames {
		if s.types>>i&1 != 0 {
			out = append(out, n)
		}
	}
	return "of type " + strings.Join(out, " or ")
}

// equal compares values; numbers by value.
func equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		f, ok1 := number(a)
		g, ok2 := number(b)
		return ok1 && ok2 && f == g
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for n, v := range x {
			if w, ok := y[n]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func span(r [2]int) string {
	if r[1] == maxCount {
		return fmt.Sprintf("%d or more", r[0])
	}
	return fmt.Sprintf("%d to %d", r[0], r[1])
}

func show(v any) string {
	b, _ := json.Marshal(v) // it came from JSON
	return string(b)
}
