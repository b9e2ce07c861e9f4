package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// splitInfo is what a part says about its place in a split model.
type splitInfo struct {
	no, count uint64 // part number from 0; count 1 for a model in one file
	tensors   uint64 // of the whole model; 0 when the file does not say
}

// split reads and checks the split keys of a part.
func (p *part) split() (splitInfo, error) {
	s := splitInfo{count: 1}
	for _, k := range []struct {
		key  string
		into *uint64
	}{{"split.count", &s.count}, {"split.no", &s.no}, {"split.tensors.count", &s.tensors}} {
		i, ok := p.head.index[k.key]
		if !ok {
			continue
		}
		e := p.head.entries[i]
		if *k.into, ok = e.value.asUint(); !ok {
			return s, &FormatError{p.path, int64(e.at), quoted("key", k.key), e.value.String() + " is not a count"}
		}
	}
	s.count = max(s.count, 1) // 0 is written for a model in one file
	if s.no >= s.count {
		e := p.head.entries[p.head.index["split.no"]]
		return s, &FormatError{p.path, int64(e.at), quoted("key", "split.no"), fmt.Sprintf("%d, but the model has %d parts", s.no, s.count)}
	}
	return s, nil
}

// splitSuffix is the end of the name of part no (from 0).
func splitSuffix(no, count uint64) string { return fmt.Sprintf("-%05d-of-%05d.gguf", no+1, count) }

// openSplit opens the other parts of the model that p belongs to and returns all of
// them in order. It owns p: on an error everything is closed.
func openSplit(p *part) (parts []*part, err error) {
	opened := []*part{p}
	defer func() {
		if err != nil {
			for _, o := range opened {
				o.close()
			}
		}
	}()
	s, err := p.split()
	if err != nil {
		return nil, err
	}
	if s.count == 1 {
		return opened, nil
	}
	if at, found := p.appended(); found {
		return nil, fmt.Errorf("gguf: %s: is part %d of %d and another GGUF begins at byte %d: the parts were joined, they must stay separate files", p.path, s.no+1, s.count, at)
	}
	stem, ok := strings.CutSuffix(p.path, splitSuffix(s.no, s.count))
	if !ok {
		return nil, fmt.Errorf("gguf: %s: is part %d of %d, but its name does not end in %q, so the other parts cannot be found", p.path, s.no+1, s.count, splitSuffix(s.no, s.count))
	}
	for no := range s.count {
		o := p
		if no != s.no {
			if o, err = openSibling(stem, no, s.count); err != nil {
				return nil, err
			}
			opened = append(opened, o)
		}
		parts = append(parts, o)
	}
	return parts, checkTotal(parts)
}

// openSibling opens part no and checks that it is what its name says.
func openSibling(stem string, no, count uint64) (*part, error) {
	path := stem + splitSuffix(no, count)
	p, err := openPart(path, 0, -1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("gguf: %s: part %d of %d is missing: %w", path, no+1, count, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("gguf: part %d of %d: %w", no+1, count, err)
	}
	s, err := p.split()
	if err == nil && (s.no != no || s.count != count) {
		err = fmt.Errorf("gguf: %s: holds part %d of %d, its name says part %d of %d", path, s.no+1, s.count, no+1, count)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// checkTotal compares the tensors found with the number the parts name.
func checkTotal(parts []*part) error {
	var found uint64
	for _, p := range parts {
		found += uint64(len(p.head.tensors))
	}
	for _, p := range parts {
		s, err := p.split()
		if err != nil {
			return err
		}
		if s.tensors != 0 && s.tensors != found {
			return fmt.Errorf("gguf: %s: the model has %d tensors by split.tensors.count, its %d parts hold %d: a part of another model?", p.path, s.tensors, len(parts), found)
		}
	}
	return nil
}

// appended looks for a second GGUF behind the last tensor, directly or at the next
// multiple of the default alignment: what joining parts with cat leaves.
func (p *part) appended() (at int64, found bool) {
	end := p.head.data
	for _, t := range p.head.tensors {
		end = max(end, t.Offset+t.Bytes)
	}
	for _, at := range []int64{end, (end + defaultAlignment - 1) &^ (defaultAlignment - 1)} {
		var b [len(magic)]byte
		if at > p.size-int64(len(b)) {
			continue
		}
		if _, err := p.file.ReadAt(b[:], p.offset+at); err == nil && string(b[:]) == magic {
			return at, true
		}
	}
	return 0, false
}
