package api

import (
	"fmt"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
)

// plugins reads the list of plugins: names, or objects with a name. A list that is there
// is never nil, so that an empty one switches off what the server runs by default.
// Faults are named by JSON pointer, as those inside of a configuration are.
func (d *decoder) plugins(name string) []appliance.PluginChoice {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	at := "/" + name
	if v.Kind() != jsontext.Array {
		d.wrong(at, "an array of names and objects", v)
		return nil
	}
	choices := []appliance.PluginChoice{}
	for i, e := range v.Elements() {
		if i >= appliance.MaxPlugins {
			d.fail(appliance.CodeInvalid, at, "holds more than %d plugins", appliance.MaxPlugins)
		}
		choice := d.plugin(fmt.Sprintf("%s/%d", at, i), e)
		if d.err != nil {
			return nil
		}
		choices = append(choices, choice)
	}
	return choices
}

// plugin reads one entry.
func (d *decoder) plugin(at string, v jsontext.Value) appliance.PluginChoice {
	c := appliance.PluginChoice{At: at}
	switch v.Kind() {
	case jsontext.String:
		c.Name = d.text(at, v)
	case jsontext.Object:
		for member, mv := range v.Members() {
			if mv.Present() && d.err == nil {
				d.pluginMember(&c, at, member, mv)
			}
		}
	default:
		d.wrong(at, "a name or an object", v)
	}
	if d.err == nil && c.Name == "" && c.Code == "" {
		d.fail(appliance.CodeMissing, at, "has no name")
	}
	return c
}

func (d *decoder) pluginMember(c *appliance.PluginChoice, at, member string, v jsontext.Value) {
	place := at + "/" + member
	switch member {
	case "name":
		c.Name = d.text(place, v)
	case "version":
		c.Versions = d.text(place, v)
	case "on_error":
		c.OnError = d.text(place, v)
	case "config":
		if v.Kind() != jsontext.Object {
			d.wrong(place, "an object", v)
			return
		}
		c.Config = v.Raw()
	case "code":
		if c.Code = d.text(place, v); c.Code == "" && d.err == nil {
			d.fail(appliance.CodeInvalid, place, "is empty")
		}
	default:
		d.fail(appliance.CodeInvalid, at, "has a member that is none of name, version, config, on_error and code")
	}
}
