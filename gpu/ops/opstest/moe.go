package opstest

import (
	"math"
	"sort"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// moeShape is a mixture of experts: router logits and the hidden row come in, the
// weighted sum of the experts' outputs goes out.
type moeShape struct {
	name    string
	experts int
	route   ops.Route
	bias    bool // for choosing
	ownBias bool // of the experts' matrices
	scaled  bool // a scale per expert
	two     bool // a second matrix with an input per expert
	typ     tensor.Type
	ties    bool // router logits take few values
	far     bool // router logits are so large that their sigmoids are 1
}

func moeCases() []testCase {
	var cases []testCase
	for _, m := range []moeShape{
		{name: "softmax", experts: 8, route: ops.Route{TopK: 2}},
		{name: "softmax,norm,scale", experts: 37, route: ops.Route{TopK: 6, Norm: true, Scale: 2.5}, two: true},
		{name: "sigmoid,bias", experts: 16, route: ops.Route{Kind: ops.RouteSigmoid, TopK: 4, Norm: true}, bias: true},
		{name: "sigmoid,groups", experts: 32, route: ops.Route{Kind: ops.RouteSigmoid, TopK: 5, Groups: 8, GroupsUsed: 3, Norm: true}, bias: true},
		{name: "raw,expertbias", experts: 8, route: ops.Route{Kind: ops.RouteRaw, TopK: 3}, ownBias: true, two: true},
		{name: "sqrtsoftplus", experts: 9, route: ops.Route{Kind: ops.RouteSqrtSoftplus, TopK: 3, Norm: true}, scaled: true},
		{name: "rawsigmoid", experts: 8, route: ops.Route{Kind: ops.RouteRawSigmoid, TopK: 3}, far: true},
		{name: "shares", experts: 12, route: ops.Route{TopK: 4, Share: 3, Norm: true}, two: true},
		{name: "all", experts: 3, route: ops.Route{TopK: 3}, scaled: true, ownBias: true},
		{name: "one", experts: 1, route: ops.Route{TopK: 1}},
		{name: "ties", experts: 20, route: ops.Route{Kind: ops.RouteSigmoid, TopK: 4}, ties: true},
		{name: "tiesingroups", experts: 20, route: ops.Route{TopK: 4, Groups: 5, GroupsUsed: 2}, ties: true},
		{name: "q4_k", experts: 4, route: ops.Route{TopK: 2, Norm: true}, typ: tensor.Q4_K},
		{name: "q8_0", experts: 4, route: ops.Route{TopK: 2, Norm: true}, typ: tensor.Q8_0, two: true},
		{name: "mxfp4", experts: 4, route: ops.Route{Kind: ops.RouteRaw, TopK: 2}, typ: tensor.MXFP4, ownBias: true},
	} {
		cases = append(cases, m.testCase())
	}
	return cases
}

func (m moeShape) testCase() testCase {
	name := "moe/" + m.name
	r := random(name + "/weights")
	in, hidden, out := max(m.typ.BlockSize(), 32), max(m.typ.BlockSize(), 40), 23
	if m.typ.BlockSize() == 32 {
		hidden = 64
	}
	if !m.two {
		hidden = out
	}
	w := experts{first: quantised(r, m.typ, in, hidden, m.stack())}
	if m.two {
		w.second = quantised(r, m.typ, hidden, out, m.stack())
	}
	if m.bias {
		w.bias = normal(r, "bias", m.experts, 1, 1)
	}
	if m.ownBias {
		w.firstBias = normal(r, "firstbias", hidden, m.stack(), 1)
	}
	if m.scaled {
		w.scale = normal(r, "scale", m.stack(), 1, 1)
	}
	logits := input{width: m.experts, draw: uniform(-3, 3)}
	if m.ties {
		logits.draw = few
	}
	if m.far {
		logits.draw = uniform(20, 60)
	}
	tol := matMulTolerance(in + hidden)
	tol.exact += 2 * functionRoundings * unit
	return testCase{
		name: name, ins: []input{logits, {width: in}}, out: out, seqs: rowCounts, tol: tol,
		build: func(b *ops.Builder, in []ops.View, out ops.View) { m.build(b, w, in[0], in[1], out) },
		oracle: func(s sequence) []expected {
			v := w.wide()
			return each(s, out, func(pos int, e expected) expected {
				e.fastMag = make([]float64, out)
				ids, weights := m.choose(s.in[0][pos], wide(w.bias))
				for k, id := range ids {
					m.addExpert(v, id, weights[k], s.in[1][pos], e)
				}
				return e
			})
		},
	}
}

// stack is the number of matrices in a stack.
func (m moeShape) stack() int { return m.experts / max(m.route.Share, 1) }

// experts are the weights of a case.
type experts struct {
	first, second, bias, firstBias, scale *ops.Weight
}

type wideExperts struct {
	first, second    matrix
	firstBias, scale []float64
}

func (w experts) wide() wideExperts {
	v := wideExperts{first: newMatrix(w.first), firstBias: wide(w.firstBias), scale: wide(w.scale)}
	if w.second != nil {
		v.second = newMatrix(w.second)
	}
	return v
}

func (m moeShape) build(b *ops.Builder, w experts, logits, x, out ops.View) {
	for _, v := range []*ops.Weight{w.first, w.second, w.bias, w.firstBias, w.scale} {
		if v != nil {
			b.Weight(v)
		}
	}
	k := m.route.TopK
	route := m.route
	route.Bias, route.In, route.IDs, route.Weights = w.bias, logits, b.Indices("ids", k), b.Buffer("weights", k)
	b.Add(&route)
	y := b.Buffer("first", k*w.first.Rows)
	b.Add(&ops.ExpertMatMul{W: w.first, Bias: w.firstBias, IDs: route.IDs, In: x, Out: y})
	if w.second != nil {
		z := b.Buffer("second", k*w.second.Rows)
		b.Add(&ops.ExpertMatMul{W: w.second, IDs: route.IDs, In: y, Out: z})
		y = z
	}
	b.Add(&ops.ExpertSum{IDs: route.IDs, Weights: route.Weights, PerExpert: w.scale, In: y, Out: out})
}

// choose lists the experts and their weights.
func (m moeShape) choose(logits, bias []float64) (ids []int, weights []float64) {
	p := m.probabilities(logits)
	score := make([]float64, len(p))
	for e := range p {
		// Ties must be found at the precision in which they are made.
		score[e] = float64(float32(p[e]))
		if bias != nil {
			score[e] += bias[e]
		}
	}
	ids = m.best(score)
	for k, id := range ids {
		ids[k] = id / max(m.route.Share, 1)
		weights = append(weights, p[ids[k]])
	}
	switch m.route.Kind {
	case ops.RouteRaw:
		weights = softmax(weights)
	case ops.RouteRawSigmoid:
		for k, x := range weights {
			weights[k] = 1 / (1 + math.Exp(-x))
		}
	}
	if m.route.Norm {
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		for k := range weights {
			weights[k] /= math.Max(sum, 6.103515625e-5)
		}
	}
	if s := float64(m.route.Scale); s != 0 {
		for k := range weights {
			weights[k] *= s
		}
	}
	return ids, weights
}

func (m moeShape) probabilities(logits []float64) []float64 {
	if m.route.Kind == ops.RouteSoftmax {
		return softmax(logits)
	}
	p := make([]float64, len(logits))
	for e, x := range logits {
		switch m.route.Kind {
		case ops.RouteSigmoid:
			p[e] = 1 / (1 + math.Exp(-x))
		case ops.RouteSqrtSoftplus:
			p[e] = math.Sqrt(math.Log1p(math.Exp(x)))
		case ops.RouteRaw, ops.RouteRawSigmoid:
			p[e] = x
		}
	}
	return p
}

func softmax(x []float64) []float64 {
	p := make([]float64, len(x))
	sum := 0.0
	for i, v := range x {
		p[i] = math.Exp(v)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// best gives the ids of the TopK largest scores within the used groups.
func (m moeShape) best(score []float64) []int {
	order := func(ids []int, key func(int) float64) []int {
		sort.SliceStable(ids, func(i, j int) bool { return key(ids[i]) > key(ids[j]) })
		return ids
	}
	all := make([]int, len(score))
	for i := range all {
		all[i] = i
	}
	if g := m.route.Groups; g > 1 {
		n := len(score) / g
		value := func(group int) float64 {
			member := append([]float64(nil), score[group*n:(group+1)*n]...)
			sort.Sort(sort.Reverse(sort.Float64Slice(member)))
			return member[0] + member[1]
		}
		groups := make([]int, g)
		for i := range groups {
			groups[i] = i
		}
		used := map[int]bool{}
		for _, group := range order(groups, value)[:m.route.GroupsUsed] {
			used[group] = true
		}
		all = all[:0]
		for i := range score {
			if used[i/n] {
				all = append(all, i)
			}
		}
	}
	return order(all, func(i int) float64 { return score[i] })[:m.route.TopK]
}

// addExpert adds weight·expert(x).
func (m moeShape) addExpert(v wideExperts, id int, weight float64, x []float64, e expected) {
	rows := len(v.first.values) / v.first.cols / m.stack()
	y, mag, rough := multiply(v.first, id*rows, rows, x)
	for i := range y {
		if v.firstBias != nil {
			y[i] += v.firstBias[id*rows+i]
			mag[i] += math.Abs(v.firstBias[id*rows+i])
		}
	}
	if v.second.values != nil {
		rows = len(v.second.values) / v.second.cols / m.stack()
		y, mag, rough = multiplyRough(v.second, id*rows, rows, y, mag, rough)
	}
	if v.scale != nil {
		weight *= v.scale[id]
	}
	for i := range y {
		e.want[i] += weight * y[i]
		e.mag[i] += math.Abs(weight) * mag[i]
		// The weights are functions of activations, too.
		e.fastMag[i] += math.Abs(weight) * (rough[i] + mag[i])
	}
}

func multiply(m matrix, from, rows int, x []float64) (y, mag, rough []float64) {
	for i := range rows {
		a, b, c := m.dot(from+i, x)
		y, mag, rough = append(y, a), append(mag, b), append(rough, c)
	}
	return y, mag, rough
}

// multiplyRough multiplies by an input that has errors of its own.
func multiplyRough(m matrix, from, rows int, x, xMag, xRough []float64) (y, mag, rough []float64) {
	y, mag, rough = multiply(m, from, rows, x)
	for i := range rows {
		mag[i] = m.mag(from+i, xMag)
		for c, w := range m.values[(from+i)*m.cols : (from+i+1)*m.cols] {
			rough[i] += math.Abs(w) * xRough[c]
		}
	}
	return y, mag, rough
}
