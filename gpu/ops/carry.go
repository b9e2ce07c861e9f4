package ops

import "fmt"

// Carrier is a runtime whose pages can go to another runtime of the same plan and
// options, on whatever backend: both have them in one layout (Paging.Parts). Recurrent
// state goes the same way with SaveState and LoadState. It is how a sequence whose prompt
// ran on one device is continued on another (gpu/phase).
type Carrier interface {
	// ReadPage copies a page of every cache of a group into into[:0], which grows where it
	// is too small, and returns it.
	ReadPage(group, page int, into []byte) ([]byte, error)
	// WritePage puts a page in place that ReadPage gave.
	WritePage(group, page int, data []byte) error
}

// PagePart is the keys or the values of one cache in a page as it is carried: for each of
// the PageSize cells all heads, for each head its values as KVType.Bytes counts them, in
// little-endian: halves, floats, or bytes and behind them a half for each block.
type PagePart struct {
	Cache  int // of the plan
	Values bool
	At     int // first byte in the page
	Heads  int
	Dim    int // values of a head
	Head   int // bytes of a head
}

// Cell is the number of bytes of a cell.
func (p PagePart) Cell() int { return p.Heads * p.Head }

// Size is the number of bytes of the part.
func (p PagePart) Size() int { return PageSize * p.Cell() }

// Parts lists what a page of a group has as it is carried, keys before values, cache by
// cache, and the bytes in all.
func (g *Paging) Parts(p *Plan, kv KVType, group int) (parts []PagePart, size int) {
	for i, c := range p.Caches {
		if g.Of[i] != group {
			continue
		}
		for _, dim := range []int{c.KeyDim, c.ValueDim} {
			part := PagePart{Cache: i, Values: len(parts)%2 == 1, At: size, Heads: c.KVHeads, Dim: dim, Head: kv.Bytes(dim)}
			parts = append(parts, part)
			size += part.Size()
		}
	}
	return parts, size
}

// CheckCarry reports a page that a group does not have, or data of another size than its
// pages have.
func (g *Paging) CheckCarry(group, page int, data []byte, size int) error {
	switch {
	case group < 0 || group >= len(g.Groups):
		return fmt.Errorf("ops: carry page: group %d of %d", group, len(g.Groups))
	case page < 0 || page >= g.Groups[group].Pages:
		return fmt.Errorf("ops: carry page: %d of %d pages in group %d", page, g.Groups[group].Pages, group)
	case len(data) != size:
		return fmt.Errorf("ops: carry page: %d bytes, a page of group %d has %d", len(data), group, size)
	}
	return nil
}

// MergeCells copies the cells of a carried page whose bits are set in cells, cell c as
// bit c.
func MergeCells(parts []PagePart, dst, src []byte, cells uint64) {
	for _, p := range parts {
		n := p.Cell()
		for c := range PageSize {
			if cells>>c&1 != 0 {
				at := p.At + c*n
				copy(dst[at:at+n], src[at:at+n])
			}
		}
	}
}
