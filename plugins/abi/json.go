package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxJSONBytes = 1 << 20
	maxJSONDepth = 64
)

// Fault is an error at a place of a JSON text.
type Fault struct {
	Pointer string // RFC 6901
	Message string
}

// Error names the place first.
func (f *Fault) Error() string {
	if f.Pointer == "" {
		return f.Message
	}
	return f.Pointer + ": " + f.Message
}

func faultf(at, format string, args ...any) error {
	return &Fault{Pointer: at, Message: fmt.Sprintf(format, args...)}
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// place is where a reader stands, written out only where there is a fault to tell: a text
// of many elements under a long name would else cost their product.
type place struct {
	up    *place
	text  string // pointer of the top, else the name of a member
	index int    // of an element; -1 in objects and at the top
}

// pointer is the place as RFC 6901 writes it.
func (p *place) pointer() string {
	switch {
	case p.up == nil:
		return p.text
	case p.index >= 0:
		return p.up.pointer() + "/" + strconv.Itoa(p.index)
	}
	return step(p.up.pointer(), p.text)
}

// step is the pointer to a member.
func step(at, name string) string { return at + "/" + escape.Replace(name) }

// ParseJSON reads one value as nil, bool, json.Number, string, []any or map[string]any.
// Text that is not UTF-8, a name that stands twice, more than one value, more than 64
// levels and more than 1 MiB are faults.
func ParseJSON(b []byte) (any, error) {
	switch {
	case len(b) > maxJSONBytes:
		return nil, faultf("", "%d bytes of JSON, at most %d", len(b), maxJSONBytes)
	case !utf8.Valid(b):
		return nil, faultf("", "JSON is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := parseValue(d, &place{index: -1}, 0)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = faultf("", "more than one JSON value")
		}
	}
	if err == nil {
		return v, nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return nil, err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, faultf("", "JSON: %v", err)
}

func parseValue(d *json.Decoder, at *place, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if depth == maxJSONDepth {
		return nil, faultf(at.pointer(), "more than %d levels", maxJSONDepth)
	}
	if delim == '[' {
		list, here := []any{}, &place{up: at}
		for d.More() {
			here.index = len(list)
			v, err := parseValue(d, here, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	object, here := map[string]any{}, &place{up: at, index: -1}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		n := name.(string) // the decoder takes nothing else for a name
		here.text = n
		if _, twice := object[n]; twice {
			return nil, faultf(here.pointer(), "stands twice")
		}
		if object[n], err = parseValue(d, here, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = d.Token()
	return object, err
}

// At finds the value at a JSON pointer.
func At(v any, pointer string) (any, bool) {
	if pointer == "" {
		return v, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		switch t := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = t[unescape.Replace(part)]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(t) || strconv.Itoa(i) != part {
				return nil, false
			}
			v = t[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// members reads the members of an object, each once, and keeps the first fault.
type members struct {
	at   string
	left map[string]any
	err  error
}

func object(v any, at string) (*members, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, faultf(at, "is not an object")
	}
	left := make(map[string]any, len(m))
	for n, v := range m {
		left[n] = v
	}
	return &members{at: at, left: left}, nil
}

func (m *members) fail(name, format string, args ...any) {
	if m.err == nil {
		m.err = faultf(step(m.at, name), format, args...)
	}
}

func (m *members) failAt(name string, i int, format string, args ...any) {
	if m.err == nil {
		m.err = faultf(step(m.at, name)+"/"+strconv.Itoa(i), format, args...)
	}
}

func (m *members) keep(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *members) take(name string) (any, bool) {
	v, ok := m.left[name]
	delete(m.left, name)
	return v, ok
}

func (m *members) text(name string, most int) string {
	v, ok := m.take(name)
	if !ok {
		return ""
	}
	s, isText := v.(string)
	if !isText || len(s) > most {
		m.fail(name, "is not a string of at most %d bytes", most)
	}
	return s
}

func (m *members) bool(name string) bool {
	v, ok := m.take(name)
	b, isBool := v.(bool)
	if ok && !isBool {
		m.fail(name, "is not true or false")
	}
	return b
}

func (m *members) int(name string, other, least, most int) int {
	v, ok := m.take(name)
	if !ok {
		return other
	}
	f, isNumber := number(v)
	if !isNumber || f != float64(int64(f)) || f < float64(least) || f > float64(most) {
		m.fail(name, "is not a whole number from %d to %d", least, most)
		return other
	}
	return int(f)
}

func (m *members) oneOf(name, other string, allowed ...string) string {
	v, ok := m.take(name)
	if !ok && other != "" {
		return other
	}
	for _, a := range allowed {
		if v == a {
			return a
		}
	}
	m.fail(name, "is not one of %s", strings.Join(allowed, ", "))
	return other
}

func (m *members) list(name string, most int) []any {
	v, ok := m.take(name)
	if !ok {
		return nil
	}
	l, isList := v.([]any)
	if !isList || len(l) > most {
		m.fail(name, "is not an array of at most %d elements", most)
		return nil
	}
	return l
}

// object is a member that is an object; an absent one is empty.
func (m *members) object(name string) *members {
	v, ok := m.take(name)
	if !ok {
		v = map[string]any{}
	}
	o, err := object(v, step(m.at, name))
	if err != nil {
		m.keep(err)
		return &members{}
	}
	return o
}

// done returns the first fault; a member that nobody read is one.
func (m *members) done() error {
	if m.err != nil {
		return m.err
	}
	first := ""
	for n := range m.left {
		if first == "" || n < first {
			first = n
		}
	}
	if len(m.left) > 0 {
		return faultf(step(m.at, first), "is not known")
	}
	return nil
}

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
