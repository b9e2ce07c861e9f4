package split

import (
	"fmt"
	"strconv"
	"strings"

	"ganglion/gpu/ops"
)

// layerOf is the layer that a weight belongs to: files name them "blk.7.attn_q.weight".
func layerOf(w *ops.Weight) (layer int, ok bool) {
	rest, found := strings.CutPrefix(w.Name, "blk.")
	number, _, more := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	return layer, found && more && err == nil && layer >= 0
}

// span gives the first and the last layer that operations have weights of; last is −1
// when they have none of a layer.
func span(list []ops.Op) (first, last int) {
	first, last = 1<<30, -1
	for _, op := range list {
		for _, w := range ops.WeightsOf(op) {
			if n, ok := layerOf(w); ok {
				first, last = min(first, n), max(last, n)
			}
		}
	}
	return first, last
}

// boundaries lists the operations before which a plan can be cut between two layers, the
// earliest first: one for each boundary, where the narrowest rows cross.
func boundaries(p *ops.Plan) []int {
	firsts := make([]int, len(p.Ops)+1) // by operation: the first layer from there on
	firsts[len(p.Ops)] = 1 << 30
	for k := len(p.Ops) - 1; k >= 0; k-- {
		first, _ := span(p.Ops[k : k+1])
		firsts[k] = min(firsts[k+1], first)
	}
	var found []int
	done, group, narrowest := -1, -2, 0
	for k := 1; k < len(p.Ops); k++ {
		_, last := span(p.Ops[k-1 : k])
		done = max(done, last)
		if done >= firsts[k] {
			continue
		}
		_, width, err := crossings(p, k)
		switch {
		case err != nil:
		case done != group:
			found, group, narrowest = append(found, k), done, width
		case width < narrowest:
			found[len(found)-1], narrowest = k, width
		}
	}
	return found
}

// holds tells people what the operations of a half are.
func holds(list []ops.Op, from, to int) string {
	var parts []string
	for _, op := range list[from:to] {
		if e, ok := op.(*ops.Embed); ok && !e.ByPosition {
			parts = append(parts, "the embedding")
			break
		}
	}
	switch first, last := span(list[from:to]); {
	case last < 0:
	case first == last:
		parts = append(parts, fmt.Sprintf("layer %d", first))
	default:
		parts = append(parts, fmt.Sprintf("layers %d to %d", first, last))
	}
	if to == len(list) {
		parts = append(parts, "the head")
	}
	return strings.Join(parts, ", ")
}
