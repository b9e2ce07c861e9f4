package wasm

import "slices"

// AppendSection appends a section with this content to the bytes of a module.
func AppendSection(to []byte, id SectionID, content []byte) []byte {
	to = append(to, byte(id))
	to = AppendUint(to, uint64(len(content)))
	return append(to, content...)
}

// AppendName appends a name with its length.
func AppendName(to []byte, name string) []byte {
	to = AppendUint(to, uint64(len(name)))
	return append(to, name...)
}

// AppendCustom returns a copy of a module with a custom section added at its end.
func AppendCustom(module []byte, name string, content []byte) []byte {
	body := AppendName(make([]byte, 0, len(name)+len(content)+5), name)
	return AppendSection(slices.Clone(module), SectionCustom, append(body, content...))
}

// DropCustom returns a copy of a module without the custom sections of a name. All
// other bytes stay as they are.
func DropCustom(module []byte, name string) ([]byte, error) {
	m, err := Parse(module)
	if err != nil {
		return nil, err
	}
	out, from := make([]byte, 0, len(module)), 0
	for _, s := range m.Sections {
		if s.ID == SectionCustom && s.Name == name {
			out = append(out, module[from:s.All.Start]...)
			from = s.All.End
		}
	}
	return append(out, module[from:]...), nil
}

// FuncNames returns the content of a custom section "name" that holds what this module
// says about its own name and the names of its functions, and nothing else. It returns
// nil if there is no such section, or a malformed one: by the specification that is no
// fault of the module, but readers elsewhere trust the counts in it.
func (m *Module) FuncNames() []byte {
	data, ok := m.Custom("name")
	if !ok {
		return nil
	}
	r := reader{b: data, end: len(data)}
	var out []byte
	for last := -1; r.left() > 0; {
		start := r.pos
		id := int(r.byte())
		content := r.bytes()
		if r.err != nil || id <= last {
			return nil
		}
		last = id
		sub := reader{b: data, pos: r.pos - len(content), end: r.pos}
		switch id {
		case 0:
			sub.name()
		case 1:
			m.nameMap(&sub)
		default:
			continue
		}
		if sub.err != nil || sub.left() > 0 {
			return nil
		}
		out = append(out, data[start:r.pos]...)
	}
	return out
}

// nameMap reads names of functions, which stand in the order of their indices.
func (m *Module) nameMap(r *reader) {
	last := int64(-1)
	for range r.count("names", 2, len(m.funcSpace)) {
		i := int64(r.u32())
		r.name()
		if r.err == nil && (i <= last || i >= int64(len(m.funcSpace))) {
			r.fail("name of function %d", i)
		}
		last = i
	}
}
