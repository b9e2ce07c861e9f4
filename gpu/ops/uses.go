package ops

// WeightsOf lists the weights of an operation, without those it was not given.
func WeightsOf(op Op) (ws []*Weight) {
	needed, optional := op.weights()
	for _, list := range [][]*Weight{needed, optional} {
		for _, w := range list {
			if w != nil {
				ws = append(ws, w)
			}
		}
	}
	return ws
}

// WeightUse says what the operations of a plan want of a weight, which decides how a
// backend keeps it.
type WeightUse struct {
	Matrix bool // multiplied with activations
	Vector bool // read whole as float32
	Table  bool // looked up row by row
	Factor bool // multiplied with float activations, in an adapter (gpu/DESIGN.md, rule 11)
}

// WeightUses tells for every weight that an operation of the plan has how it is used.
func (p *Plan) WeightUses() map[*Weight]*WeightUse {
	uses := make(map[*Weight]*WeightUse)
	of := func(w *Weight) *WeightUse {
		if uses[w] == nil {
			uses[w] = &WeightUse{}
		}
		return uses[w]
	}
	for _, op := range p.Ops {
		for _, w := range WeightsOf(op) {
			switch o := op.(type) {
			case *Embed:
				of(w).Table = true
			case *LowRank:
				of(w).Factor = true
			case *MatMul:
				of(w).as(w == o.W)
			case *ExpertMatMul:
				of(w).as(w == o.W)
			default:
				of(w).Vector = true
			}
		}
	}
	return uses
}

// as notes the use of a product: its matrix, or its bias.
func (u *WeightUse) as(matrix bool) {
	u.Matrix = u.Matrix || matrix
	u.Vector = u.Vector || !matrix
}
