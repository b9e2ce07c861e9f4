package api

import (
	"fmt"
	"math"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
)

// adapters reads the list of LoRA adapters. A list that is there is never nil, so that
// an empty one switches off what the server applies by default.
func (d *decoder) adapters(name string) []appliance.AdapterChoice {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	if v.Kind() != jsontext.Array {
		d.wrong(name, "an array of objects", v)
		return nil
	}
	choices := []appliance.AdapterChoice{}
	for i, e := range v.Elements() {
		if i >= appliance.MaxAdapters {
			d.fail(appliance.CodeInvalid, name, "holds more than %d adapters", appliance.MaxAdapters)
		}
		choice := d.adapter(fmt.Sprintf("%s[%d]", name, i), e)
		if d.err != nil {
			return nil
		}
		choices = append(choices, choice)
	}
	return choices
}

// adapter reads one entry: a name or an id, and a scale.
func (d *decoder) adapter(param string, v jsontext.Value) (c appliance.AdapterChoice) {
	if v.Kind() != jsontext.Object {
		d.wrong(param, "an object", v)
		return c
	}
	named := false
	for member, mv := range v.Members() {
		if !mv.Present() || d.err != nil {
			continue
		}
		switch at := param + "." + member; member {
		case "name":
			c.Name, named = d.text(at, mv), true
		case "id":
			n, whole := d.whole(at, mv)
			if d.err == nil && (whole != jsontext.IsInt || n < 0 || n > math.MaxInt32) {
				d.fail(appliance.CodeInvalid, at, "%s is no adapter's number", shown(mv))
			}
			c.ID = &n
		case "scale":
			f, _ := d.float(at, mv)
			c.Scale = &f
		}
	}
	switch {
	case d.err != nil:
	case named && c.ID != nil:
		d.fail(appliance.CodeInvalid, param, "has a name and an id; one of them says which adapter is meant")
	case !named && c.ID == nil:
		d.fail(appliance.CodeMissing, param, "has neither name nor id")
	}
	return c
}
