package ref

import (
	"cmp"
	"math"
	"slices"

	"ganglion/gpu/ops"
)

// smallestSum bounds the sum of the chosen weights from below (2⁻¹⁴, the smallest
// normal half).
const smallestSum = 6.103515625e-5

// route chooses the experts of every row.
func (p *Program) route(o *ops.Route) {
	bias := p.rt.vector(o.Bias)
	for r := range p.count(o.In) {
		prob := probabilities(o.Kind, p.row(o.In, r))
		score := slices.Clone(prob)
		for e := range bias {
			score[e] += bias[e]
		}
		if o.Groups > 1 {
			dropGroups(score, o.Groups, o.GroupsUsed)
		}
		ids, weights := p.ids(o.IDs, r), p.row(o.Weights, r)
		for k, e := range descending(score)[:o.TopK] {
			e /= max(o.Share, 1)
			ids[k], weights[k] = int32(e), prob[e]
		}
		weigh(o, weights)
	}
}

// probabilities turns router logits into the probability of each expert; with
// RouteRaw and RouteRawSigmoid they stay logits.
func probabilities(kind ops.RouteKind, logits []float32) []float32 {
	p := slices.Clone(logits)
	for e, x := range p {
		switch kind {
		case ops.RouteSigmoid:
			p[e] = ops.SigmoidF(x)
		case ops.RouteSqrtSoftplus:
			s := ops.SoftplusF(x)
			p[e] = s * ops.Rsqrt(s)
		}
	}
	if kind == ops.RouteSoftmax {
		softmax(p)
	}
	return p
}

func softmax(x []float32) {
	m := slices.Max(x)
	for i := range x {
		x[i] = ops.Exp(x[i] - m)
	}
	r := ops.Recip(ops.Sum(x))
	for i := range x {
		x[i] *= r
	}
}

// descending lists the indices of x from the largest value to the smallest, equal
// values by ascending index.
func descending(x []float32) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[b], x[a]) })
	return order
}

// dropGroups sets the scores outside the used groups to −∞. A group counts as much
// as the sum of its best two experts.
func dropGroups(score []float32, groups, used int) {
	n := len(score) / groups
	sums := make([]float32, groups)
	for g := range sums {
		member := score[g*n : (g+1)*n]
		best := descending(member)
		sums[g] = member[best[0]]
		if n > 1 {
			sums[g] += member[best[1]]
		}
	}
	for _, g := range descending(sums)[used:] {
		for e := range n {
			score[g*n+e] = float32(math.Inf(-1))
		}
	}
}

// weigh turns the chosen probabilities into the weights of the experts' outputs.
func weigh(o *ops.Route, weights []float32) {
	if o.Kind == ops.RouteRaw {
		softmax(weights)
	}
	if o.Kind == ops.RouteRawSigmoid {
		for k, x := range weights {
			weights[k] = ops.SigmoidF(x)
		}
	}
	if o.Norm {
		sum := float32(0)
		for _, w := range weights {
			sum += w
		}
		r := ops.Recip(max(sum, smallestSum))
		for k := range weights {
			weights[k] *= r
		}
	}
	if o.Scale != 0 && o.Scale != 1 {
		for k := range weights {
			weights[k] *= o.Scale
		}
	}
}

// expertMatMul is out[k] = W[IDs[k]]·in[k] + Bias[IDs[k]].
func (p *Program) expertMatMul(o *ops.ExpertMatMul) {
	bias := p.rt.vector(o.Bias)
	topK := o.IDs.Width
	for r := range p.count(o.In) {
		in, out, ids := p.row(o.In, r), p.row(o.Out, r), p.ids(o.IDs, r)
		var xs []operand // one for all experts, or one for each
		for at := 0; at < len(in); at += o.W.Cols {
			xs = append(xs, newOperand(o.W, in[at:at+o.W.Cols]))
		}
		p.parallel(topK*o.W.Rows, func(from, to int) {
			w := p.rt.newFactor(o.W)
			for i := from; i < to; i++ {
				k, c := i/o.W.Rows, i%o.W.Rows
				row := int(ids[k])*o.W.Rows + c
				w.load(row)
				out[i] = w.dot(&xs[k%len(xs)])
				if bias != nil {
					out[i] += bias[row]
				}
			}
		})
	}
}

// expertSum adds the experts' outputs in list order: out = Σ_k weight[k]·in[k].
func (p *Program) expertSum(o *ops.ExpertSum) {
	own := p.rt.vector(o.PerExpert)
	p.each(o.In, o.Out, func(r int, in, out []float32) {
		clear(out)
		ids, weights := p.ids(o.IDs, r), p.row(o.Weights, r)
		for k, w := range weights {
			if own != nil {
				w = float32(w * own[ids[k]])
			}
			for c := range out {
				out[c] += float32(w * in[k*len(out)+c])
			}
		}
	})
}
