package api

import (
	"errors"
	"fmt"
	"math"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
)

// decoder reads the fields of one object. The first failure stays; readers called
// after it return nothing.
type decoder struct {
	fields map[string]jsontext.Value
	err    error
}

// open checks a body and finds its known fields.
func open(body []byte) (*decoder, error) {
	v, err := jsontext.Parse(body)
	if err != nil {
		return nil, textError(err)
	}
	if v.Kind() != jsontext.Object {
		return nil, appliance.Errorf(appliance.CodeInvalidType, "", "the body must be a JSON object, not %s", v.Kind())
	}
	d := &decoder{fields: make(map[string]jsontext.Value, 16)}
	for name, member := range v.Members() {
		if known[name] {
			d.fields[name] = member
		}
	}
	return d, nil
}

// textError turns a fault of the text into an error of the wire. A name is
// repeated only if it is one of ours: others may hold anything.
func textError(err error) error {
	var e *jsontext.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Fault {
	case jsontext.FaultUTF8:
		return appliance.Errorf(appliance.CodeInvalidUTF8, "", "the body is not UTF-8 at byte %d", e.Offset)
	case jsontext.FaultDuplicate:
		name := ""
		if known[e.Name] {
			name = e.Name
		}
		return appliance.Errorf(appliance.CodeDuplicateKey, name, "%sthe name at byte %d occurs twice in one object", prefix(name), e.Offset)
	}
	return appliance.Errorf(appliance.CodeInvalidJSON, "", "the body is not JSON that can be read: byte %d: %s", e.Offset, e.Message)
}

func prefix(param string) string {
	if param == "" {
		return ""
	}
	return param + ": "
}

func (d *decoder) fail(code appliance.Code, param, format string, args ...any) {
	if d.err == nil {
		d.err = appliance.Errorf(code, param, "%s: %s", param, fmt.Sprintf(format, args...))
	}
}

// wrong fails because a value has the wrong type.
func (d *decoder) wrong(param, want string, v jsontext.Value) {
	d.fail(appliance.CodeInvalidType, param, "must be %s, not %s", want, v.Kind())
}

// field is a field's value if it is there, is not null and nothing has failed.
func (d *decoder) field(name string) (jsontext.Value, bool) {
	v := d.fields[name]
	return v, d.err == nil && v.Present()
}

func (d *decoder) boolean(name string) bool {
	v, ok := d.field(name)
	if ok && v.Kind() != jsontext.Bool {
		d.wrong(name, "a boolean", v)
	}
	return ok && v.True()
}

func (d *decoder) number(name string) *float64 {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	f, ok := d.float(name, v)
	if !ok {
		return nil
	}
	return &f
}

func (d *decoder) float(param string, v jsontext.Value) (float64, bool) {
	if v.Kind() != jsontext.Number {
		d.wrong(param, "a number", v)
		return 0, false
	}
	f, ok := v.Float()
	if !ok {
		d.fail(appliance.CodeInvalid, param, "%s is beyond the range of numbers", shown(v))
	}
	return f, ok
}

// shown is a number as written, at most 64 characters of it.
func shown(v jsontext.Value) string {
	if raw := v.Raw(); len(raw) > 64 {
		return string(raw[:61]) + "..."
	}
	return string(v.Raw())
}

// whole reads an integer and tells how it stands to 64 bits.
func (d *decoder) whole(param string, v jsontext.Value) (int64, jsontext.Whole) {
	if v.Kind() != jsontext.Number {
		d.wrong(param, "an integer", v)
		return 0, jsontext.Fraction
	}
	n, whole := v.Int()
	if whole == jsontext.Fraction {
		d.fail(appliance.CodeInvalidType, param, "must be an integer, not %s", shown(v))
	}
	return n, whole
}

func (d *decoder) integer(name string) *int64 {
	return d.ranged(name, math.MinInt64, math.MaxInt64)
}

func (d *decoder) ranged(name string, low, high int64) *int64 {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	n, whole := d.whole(name, v)
	if d.err == nil && (whole != jsontext.IsInt || n < low || n > high) {
		d.fail(appliance.CodeInvalid, name, "must be an integer from %d to %d, not %s", low, high, shown(v))
	}
	if d.err != nil {
		return nil
	}
	return &n
}

func (d *decoder) text(param string, v jsontext.Value) string {
	if v.Kind() != jsontext.String {
		d.wrong(param, "a string", v)
		return ""
	}
	s, err := v.Text()
	if err != nil {
		d.fail(appliance.CodeInvalidUTF8, param, "holds a surrogate escape without its other half, which is no character")
	}
	return s
}

// word reads an optional string, which is not empty where it is given.
func (d *decoder) word(name string) string {
	v, ok := d.field(name)
	if !ok {
		return ""
	}
	s := d.text(name, v)
	if s == "" {
		d.fail(appliance.CodeInvalid, name, "must not be empty")
	}
	return s
}
