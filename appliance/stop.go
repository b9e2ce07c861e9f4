package appliance

// stopSet finds stop strings in a stream of bytes: the automaton of Aho and Corasick
// ("Efficient string matching", CACM 18(6), 1975). The match that ends first wins,
// and among those that end there the longest, so the result does not depend on how
// the text is cut into tokens. A stopSet is immutable once built.
type stopSet struct {
	nodes []stopNode // [0] is the root
	first [256]int32 // children of the root, 0 = none
}

// stopNode stands for a prefix of a stop string.
type stopNode struct {
	child, sibling int32 // list of the nodes one byte longer; 0 ends it
	fail           int32 // node of the longest proper suffix that is a prefix too
	depth          int32 // length of the prefix
	match          int32 // length of the longest stop string that ends here, 0 = none
	b              byte  // last byte
}

// newStopSet builds the automaton; none of the stops may be empty. It returns nil
// for no stops.
func newStopSet(stops []string) *stopSet {
	if len(stops) == 0 {
		return nil
	}
	s := &stopSet{nodes: make([]stopNode, 1)}
	for _, stop := range stops {
		at := int32(0)
		for i := range len(stop) {
			at = s.add(at, stop[i])
		}
		s.nodes[at].match = int32(len(stop))
	}
	s.link()
	return s
}

// add returns the child of a node for a byte, making it where it is missing.
func (s *stopSet) add(at int32, b byte) int32 {
	if c := s.child(at, b); c != 0 {
		return c
	}
	c := int32(len(s.nodes))
	s.nodes = append(s.nodes, stopNode{b: b, depth: s.nodes[at].depth + 1, sibling: s.nodes[at].child})
	s.nodes[at].child = c
	if at == 0 {
		s.first[b] = c
	}
	return c
}

// child returns the child of a node for a byte, 0 when it has none.
func (s *stopSet) child(at int32, b byte) int32 {
	if at == 0 {
		return s.first[b]
	}
	for c := s.nodes[at].child; c != 0; c = s.nodes[c].sibling {
		if s.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// link sets the fail links, shorter prefixes first.
func (s *stopSet) link() {
	queue := make([]int32, 1, len(s.nodes))
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c := s.nodes[at].child; c != 0; c = s.nodes[c].sibling {
			if at != 0 {
				s.nodes[c].fail = s.next(s.nodes[at].fail, s.nodes[c].b)
			}
			if s.nodes[c].match == 0 {
				s.nodes[c].match = s.nodes[s.nodes[c].fail].match
			}
			queue = append(queue, c)
		}
	}
}

// next returns the state after a byte: the longest suffix of what was read that is a
// prefix of a stop string.
func (s *stopSet) next(at int32, b byte) int32 {
	for {
		if c := s.child(at, b); c != 0 || at == 0 {
			return c
		}
		at = s.nodes[at].fail
	}
}

// stopMatcher is a stopSet with a position in one stream. The zero value matches
// nothing.
type stopMatcher struct {
	set   *stopSet
	state int32
}

// scan reads text. When a stop string is complete it returns the number of bytes
// read up to its end and its length; the matcher is then not to be used again.
func (m *stopMatcher) scan(text []byte) (end, length int, ok bool) {
	if m.set == nil {
		return len(text), 0, false
	}
	for i, b := range text {
		m.state = m.set.next(m.state, b)
		if n := m.set.nodes[m.state].match; n > 0 {
			return i + 1, int(n), true
		}
	}
	return len(text), 0, false
}

// held returns how many of the last bytes read may still begin a stop string.
func (m *stopMatcher) held() int {
	if m.set == nil {
		return 0
	}
	return int(m.set.nodes[m.state].depth)
}
