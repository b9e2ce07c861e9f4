package jsontext

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Limits of a text. Both bound what a hostile text can make the reader hold:
// depth bounds the stack, names bounds the sets that find equal names.
const (
	MaxDepth = 64      // arrays and objects inside each other
	MaxNames = 1 << 20 // member names in one text; the largest vocabulary has 2^18
)

// Fault is a class of errors in a JSON text.
type Fault int

// The faults.
const (
	FaultSyntax    Fault = iota // not JSON, or more than one value
	FaultUTF8                   // bytes that are not UTF-8
	FaultDuplicate              // two equal names in one object
	FaultLimit                  // deeper or larger than the limits
)

// Error tells what is wrong with a text and where.
type Error struct {
	Fault   Fault
	Offset  int    // byte offset in the text
	Name    string // the name that occurs twice, for FaultDuplicate
	Message string // one sentence without the text's own content
}

func (e *Error) Error() string {
	return fmt.Sprintf("jsontext: byte %d: %s", e.Offset, e.Message)
}

// Parse checks that text is one JSON value in UTF-8, with nothing after it but
// white space, and returns a view of it. The text must not change afterwards.
func Parse(text []byte) (Value, error) {
	if i := firstIllFormed(text); i >= 0 {
		return Value{}, &Error{Fault: FaultUTF8, Offset: i, Message: "the text is not valid UTF-8"}
	}
	c := checker{text: text}
	start := c.space(0)
	end, err := c.value(start, 0)
	if err != nil {
		return Value{}, err
	}
	if i := c.space(end); i < len(text) {
		return Value{}, c.syntax(i, "something follows the value")
	}
	return Value{raw: text[start:end]}, nil
}

// firstIllFormed is the offset of the first byte that is not UTF-8, or -1.
func firstIllFormed(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}

// checker walks a text once. Every method takes an offset and returns the one
// behind what it read.
type checker struct {
	text  []byte
	names int
}

func (c *checker) syntax(at int, message string) error {
	if at >= len(c.text) {
		return &Error{Fault: FaultSyntax, Offset: len(c.text), Message: "the text ends too early"}
	}
	return &Error{Fault: FaultSyntax, Offset: at, Message: message}
}

func (c *checker) space(i int) int {
	for i < len(c.text) && isSpace(c.text[i]) {
		i++
	}
	return i
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func (c *checker) value(i, depth int) (int, error) {
	if i >= len(c.text) {
		return i, c.syntax(i, "")
	}
	switch b := c.text[i]; {
	case b == '{':
		return c.object(i, depth+1)
	case b == '[':
		return c.array(i, depth+1)
	case b == '"':
		return c.str(i)
	case b == '-' || b >= '0' && b <= '9':
		return c.number(i)
	case b == 't':
		return c.word(i, "true")
	case b == 'f':
		return c.word(i, "false")
	case b == 'n':
		return c.word(i, "null")
	}
	return i, c.syntax(i, "a value is expected here")
}

func (c *checker) word(i int, word string) (int, error) {
	if !bytes.HasPrefix(c.text[i:], []byte(word)) {
		return i, c.syntax(i, "a value is expected here")
	}
	return i + len(word), nil
}

func (c *checker) deep(i, depth int) error {
	if depth > MaxDepth {
		return &Error{Fault: FaultLimit, Offset: i,
			Message: fmt.Sprintf("arrays and objects are nested deeper than %d", MaxDepth)}
	}
	return nil
}

func (c *checker) array(i, depth int) (int, error) {
	if err := c.deep(i, depth); err != nil {
		return i, err
	}
	i = c.space(i + 1)
	if i < len(c.text) && c.text[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := c.value(i, depth)
		if err != nil {
			return i, err
		}
		i = c.space(end)
		switch {
		case i < len(c.text) && c.text[i] == ',':
			i = c.space(i + 1)
		case i < len(c.text) && c.text[i] == ']':
			return i + 1, nil
		default:
			return i, c.syntax(i, "',' or ']' is expected here")
		}
	}
}

func (c *checker) object(i, depth int) (int, error) {
	if err := c.deep(i, depth); err != nil {
		return i, err
	}
	var seen nameSet
	i = c.space(i + 1)
	if i < len(c.text) && c.text[i] == '}' {
		return i + 1, nil
	}
	for {
		end, err := c.member(i, depth, &seen)
		if err != nil {
			return i, err
		}
		i = c.space(end)
		switch {
		case i < len(c.text) && c.text[i] == ',':
			i = c.space(i + 1)
		case i < len(c.text) && c.text[i] == '}':
			return i + 1, nil
		default:
			return i, c.syntax(i, "',' or '}' is expected here")
		}
	}
}

func (c *checker) member(i, depth int, seen *nameSet) (int, error) {
	if i >= len(c.text) || c.text[i] != '"' {
		return i, c.syntax(i, "a name in double quotes is expected here")
	}
	end, err := c.str(i)
	if err != nil {
		return i, err
	}
	if c.names++; c.names > MaxNames {
		return i, &Error{Fault: FaultLimit, Offset: i,
			Message: fmt.Sprintf("the objects have more than %d names", MaxNames)}
	}
	if name := c.text[i+1 : end-1]; !seen.add(name) {
		text, _ := unquote(name, true)
		return i, &Error{Fault: FaultDuplicate, Offset: i, Name: string(text), Message: "a name occurs twice in one object"}
	}
	i = c.space(end)
	if i >= len(c.text) || c.text[i] != ':' {
		return i, c.syntax(i, "':' is expected here")
	}
	return c.value(c.space(i+1), depth)
}

// str reads a string from its opening quote to behind its closing one.
func (c *checker) str(i int) (int, error) {
	for i++; i < len(c.text); {
		switch b := c.text[i]; {
		case b == '"':
			return i + 1, nil
		case b < 0x20:
			return i, c.syntax(i, "a control character in a string must be escaped")
		case b == '\\':
			n := escapeLen(c.text[i:])
			if n == 0 {
				return i, c.syntax(i, "an escape in a string is not one of JSON's")
			}
			i += n
		default:
			i++
		}
	}
	return i, c.syntax(i, "")
}

// escapeLen is the length of the escape at the start of s, 0 if it is none.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		for _, b := range s[2:6] {
			if hexValue(b) < 0 {
				return 0
			}
		}
		return 6
	}
	return 0
}

func hexValue(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

func (c *checker) number(i int) (int, error) {
	at := func(j int) byte {
		if j < len(c.text) {
			return c.text[j]
		}
		return 0
	}
	digits := func(j int) int {
		for at(j) >= '0' && at(j) <= '9' {
			j++
		}
		return j
	}
	const fault = "this is not a JSON number"
	if at(i) == '-' {
		i++
	}
	first := i
	i = digits(i)
	if i == first || at(first) == '0' && i > first+1 {
		return i, c.syntax(first, fault)
	}
	if at(i) == '.' {
		j := digits(i + 1)
		if j == i+1 {
			return i, c.syntax(j, fault)
		}
		i = j
	}
	if at(i) == 'e' || at(i) == 'E' {
		i++
		if at(i) == '+' || at(i) == '-' {
			i++
		}
		j := digits(i)
		if j == i {
			return i, c.syntax(j, fault)
		}
		i = j
	}
	return i, nil
}

// nameSet holds the names of one object. Few names are compared one by one, since
// nearly every object is small and a map would cost more than the search.
type nameSet struct {
	few  [][]byte
	many map[string]struct{}
}

// add puts in a name as written between its quotes and tells whether it is new.
// Names are compared decoded, so that "a" and "\u0061" are equal.
func (s *nameSet) add(name []byte) bool {
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = unquote(name, true)
	}
	if s.many == nil {
		for _, n := range s.few {
			if bytes.Equal(n, name) {
				return false
			}
		}
		if s.few = append(s.few, name); len(s.few) <= 16 {
			return true
		}
		s.many = make(map[string]struct{}, 2*len(s.few))
		for _, n := range s.few {
			s.many[string(n)] = struct{}{}
		}
		return true
	}
	if _, ok := s.many[string(name)]; ok {
		return false
	}
	s.many[string(name)] = struct{}{}
	return true
}
