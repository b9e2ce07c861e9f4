package kvcache

import (
	"slices"

	"ganglion/gpu/ops"
)

// node is a known beginning: the tokens of one page after those of its ancestors. The
// tree is compared token by token, so nothing rests on a hash. Nodes shorter than a
// page are leaves that no running sequence has.
type node struct {
	salt     uint64 // of a root
	parent   *node  // nil for a root
	depth    int
	tokens   []int32 // 1 … PageSize; none for a root
	pages    []int32 // by group; -1: gone
	states   []*snapshot
	children []*node
	refs     int    // slots that have the node on their path (a root: slots of its salt)
	used     uint64 // when it was used last; never older than its descendants
}

// root is the tree of a salt.
func (c *Cache) root(salt uint64) *node {
	n := c.roots[salt]
	if n == nil {
		n = &node{salt: salt}
		c.roots[salt] = n
	}
	return n
}

// common is the number of tokens with which both begin. One below -1 stands for an
// embedding that is known by this number; -1 for one that is not known.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && a[n] != -1 {
		n++
	}
	return n
}

// match is how far a prompt is known: whole pages, and the node whose first run tokens
// follow.
type match struct {
	path []*node
	last *node
	run  int
}

// match looks a prompt up. Of several nodes that follow equally far the one used last
// is taken.
func (c *Cache) match(n *node, prompt []int32) (m match) {
	for {
		m.last, m.run = nil, 0
		for _, child := range n.children {
			run := common(child.tokens, prompt)
			if run > m.run || (run > 0 && run == m.run && child.used > m.last.used) {
				m.last, m.run = child, run
			}
		}
		if m.run < ops.PageSize {
			return m
		}
		m.path = append(m.path, m.last)
		n, prompt = m.last, prompt[ops.PageSize:]
	}
}

// node is the node of page i.
func (m *match) node(i int) *node {
	if i < len(m.path) {
		return m.path[i]
	}
	return m.last
}

// candidates are the lengths at which a sequence can go on from a match, longest
// first.
func (c *Cache) candidates(m match) (lengths []int) {
	whole := len(m.path) * ops.PageSize
	switch {
	case c.state:
		lengths = m.stateLengths()
	case m.run > 0:
		lengths = append(lengths, whole+m.run)
		fallthrough
	default:
		for n := whole; n > 0; n -= ops.PageSize {
			lengths = append(lengths, n)
		}
	}
	return slices.DeleteFunc(lengths, func(n int) bool { return !c.visible(&m, n) })
}

// visible tells whether all that a row at position n looks back on is there.
func (c *Cache) visible(m *match, n int) bool {
	for g, group := range c.paging.Groups {
		for pos := group.First(n); pos < n; pos = (pos/ops.PageSize + 1) * ops.PageSize {
			if m.node(pos / ops.PageSize).pages[g] < 0 {
				return false
			}
		}
	}
	return true
}

// seal enters the full pages of a slot that are not in the tree yet.
func (c *Cache) seal(id int) {
	s := &c.slots[id]
	for (len(s.path)+1)*ops.PageSize <= s.whole {
		i := len(s.path)
		n := c.enter(id, i, s.tokens[i*ops.PageSize:(i+1)*ops.PageSize])
		n.refs++
		s.path = append(s.path, n)
	}
}

// sealTail enters the page that a sequence leaves unfinished.
func (c *Cache) sealTail(id int) {
	s := &c.slots[id]
	switch i := len(s.path); {
	case i*ops.PageSize < s.whole:
		c.prune(c.enter(id, i, s.tokens[i*ops.PageSize:s.whole]))
	case i > 0:
		c.giveStates(s, s.path[i-1], (i-1)*ops.PageSize, i*ops.PageSize)
	}
}

// enter finds or makes the node of a slot's page i. Where it is known already, the
// slot goes over to the node's page, which holds the same bits.
func (c *Cache) enter(id, i int, tokens []int32) *node {
	s := &c.slots[id]
	parent := s.root
	if i > 0 {
		parent = s.path[i-1]
	}
	n := parent.known(tokens)
	if n == nil {
		n = &node{parent: parent, depth: i, tokens: slices.Clone(tokens), pages: make([]int32, len(c.pools))}
		for g := range n.pages {
			n.pages[g] = -1
		}
		parent.children = append(parent.children, n)
	}
	c.clock++
	for up := n; up != nil; up = up.parent {
		up.used = c.clock
	}
	c.giveStates(s, n, i*ops.PageSize, i*ops.PageSize+len(tokens))
	for g := range c.pools {
		c.givePage(id, g, i, n, len(tokens))
	}
	for _, short := range slices.Clone(parent.children) {
		if len(short.tokens) < len(n.tokens) && common(short.tokens, n.tokens) == len(short.tokens) {
			c.inherit(n, short)
		}
	}
	return n
}

// known is the child that begins with the tokens.
func (n *node) known(tokens []int32) *node {
	for _, child := range n.children {
		if common(child.tokens, tokens) == len(tokens) {
			return child
		}
	}
	return nil
}

// givePage gives a slot's page to a node that has none, or the node's to the slot. A
// page with fewer tokens than the node is of no use to it.
func (c *Cache) givePage(id, g, i int, n *node, tokens int) {
	own := c.table(g, id)[i]
	switch have := n.pages[g]; {
	case own < 0 || own == have:
	case have >= 0:
		c.let(id, g, i)
		c.hold(id, g, i, have)
	case tokens == len(n.tokens):
		n.pages[g] = own
		c.pools[g].pages[own].node = n
	}
}

// inherit takes over what a node with a part of n's tokens knows.
func (c *Cache) inherit(n, short *node) {
	for _, st := range slices.Clone(short.states) {
		short.states = without(short.states, st)
		c.adopt(n, st)
	}
	c.remove(short)
}

// remove takes a node and all that follow it out of the tree. None of them is on a
// running sequence's path.
func (c *Cache) remove(n *node) {
	for len(n.children) > 0 {
		c.remove(n.children[len(n.children)-1])
	}
	for g, page := range n.pages {
		if page >= 0 {
			n.pages[g] = -1
			c.pools[g].pages[page].node = nil
			c.pools[g].settle(page)
		}
	}
	for len(n.states) > 0 {
		c.states.release(n.states[0])
	}
	c.prune(n)
}

// prune takes nodes out of the tree that know nothing any more, from n on up.
func (c *Cache) prune(n *node) {
	for n != nil && n.refs == 0 && len(n.children) == 0 && len(n.states) == 0 &&
		!slices.ContainsFunc(n.pages, func(p int32) bool { return p >= 0 }) {
		up := n.parent
		if up == nil { // a root, or a node that was taken out already
			if c.roots[n.salt] == n {
				delete(c.roots, n.salt)
			}
			return
		}
		if i := slices.Index(up.children, n); i >= 0 {
			up.children = slices.Delete(up.children, i, i+1)
		}
		n.parent = nil
		n = up
	}
}
