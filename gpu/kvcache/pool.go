package kvcache

import "ganglion/gpu/ops"

// pool is the pages of one group of caches. A page is free, or it is held by tables of
// slots, or by a node of the tree, or by both.
type pool struct {
	full  bool // the group's caches have no window
	pages []page
	free  []int32
}

type page struct {
	refs int   // entries of tables that name it, and copies under way
	node *node // that has it, or nil
}

func newPool(g ops.PageGroup) pool {
	p := pool{full: g.Window <= 0, pages: make([]page, g.Pages), free: make([]int32, g.Pages)}
	for i := range p.free {
		p.free[i] = int32(g.Pages - 1 - i)
	}
	return p
}

// hold adds a reference to a page; -1 is none.
func (p *pool) hold(i int32) {
	if i >= 0 {
		p.pages[i].refs++
	}
}

// drop takes a reference away.
func (p *pool) drop(i int32) {
	if i >= 0 {
		p.pages[i].refs--
		p.settle(i)
	}
}

// settle makes a page free that nobody has.
func (p *pool) settle(i int32) {
	if p.pages[i].refs == 0 && p.pages[i].node == nil {
		p.free = append(p.free, i)
	}
}

// oldest is the page that only the tree has and that was used least recently, of
// equals the one deepest in the tree: a node is never older than what follows it, so
// leaves go first. It is -1 when there is none. A look through the whole pool for each
// new page, once in 64 tokens, costs less than an order kept up to date.
func (p *pool) oldest() int32 {
	best := int32(-1)
	for i := range p.pages {
		n := p.pages[i].node
		if n == nil || p.pages[i].refs > 0 {
			continue
		}
		if best >= 0 {
			b := p.pages[best].node
			if n.used > b.used || (n.used == b.used && n.depth <= b.depth) {
				continue
			}
		}
		best = int32(i)
	}
	return best
}

// table is the page table of a slot in a group.
func (c *Cache) table(g, id int) []int32 { return c.paging.Table(c.tables, g, id) }

// hold puts a page into a slot's table.
func (c *Cache) hold(id, g, i int, page int32) {
	c.pools[g].hold(page)
	c.table(g, id)[i] = page
}

// let takes entry i out of a slot's table.
func (c *Cache) let(id, g, i int) {
	table := c.table(g, id)
	if table[i] >= 0 {
		c.pools[g].drop(table[i])
		table[i] = -1
	}
}

// own gives a slot a page of its own where it has none. It is false when all pages are
// held by slots.
func (c *Cache) own(id, g, i int) bool {
	if c.table(g, id)[i] >= 0 {
		return true
	}
	p := &c.pools[g]
	if len(p.free) == 0 {
		old := p.oldest()
		if old < 0 {
			return false
		}
		c.evict(g, old)
	}
	n := len(p.free) - 1
	page := p.free[n]
	p.free = p.free[:n]
	c.hold(id, g, i, page)
	return true
}

// evict takes a page from its node, which a node of a full group does not survive.
func (c *Cache) evict(g int, i int32) {
	n := c.pools[g].pages[i].node
	if c.pools[g].full {
		c.remove(n)
		return
	}
	n.pages[g] = -1
	c.pools[g].pages[i].node = nil
	c.pools[g].settle(i)
	c.prune(n)
}
