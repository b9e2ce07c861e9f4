package meter

import "ganglion/plugins/wasm"

// A point is a place where code may be put in: before the byte at offset at.
type point struct {
	at     int
	amount int64   // fuel to take
	room   int64   // what of later pieces the charge may still take on
	head   bool    // of a region: where the counter is looked at
	off    bool    // nothing is put in: an earlier point charges for this piece
	bulk   wasm.Op // if not 0, the point charges for the bulk instruction behind it
}

// A plan finds the points of one function, in the order of their offsets. Its slices are
// reused from function to function.
type plan struct {
	m      *wasm.Module
	policy policy

	points []point
	bulk   bool    // there are bulk instructions among the points
	frames []frame // open blocks
	pieces []int   // closed pieces: the point that charges for each
	dead   int     // in code that is never reached: 1 + the blocks opened in it

	// The open piece.
	own   int   // its own point
	under int   // the point of a piece of its region that always runs before it, or −1
	cost  int64 // so far
}

// A frame is an open block.
type frame struct {
	loop    bool
	params  int // number of them
	results int
	piece   int // the piece in which it was opened
}

// open begins a piece. With under −1 it begins a region and is charged where it stands.
func (p *plan) open(at, under int, free bool) {
	p.own, p.under, p.cost = len(p.points), under, 0
	p.points = append(p.points, point{at: at, head: under < 0, room: absorbed, off: free})
}

// close ends the open piece and settles which point charges for it.
func (p *plan) close() {
	by := p.own
	if p.under >= 0 && !p.policy.separate {
		if up := &p.points[p.under]; p.cost <= up.room {
			up.room -= p.cost
			up.amount += p.cost
			p.points[p.own].off = true
			p.cost, by = 0, p.under
		}
	}
	p.points[by].amount += p.cost
	p.pieces = append(p.pieces, by)
}

// next ends the open piece and begins one that always runs after it, if it runs.
func (p *plan) next(at int) {
	p.close()
	p.open(at, p.pieces[len(p.pieces)-1], p.policy.freePieces)
}

// arity is the number of values that a branch to a label carries.
func (p *plan) arity(label uint32) int64 {
	f := &p.frames[len(p.frames)-1-int(label)]
	if f.loop {
		return int64(f.params)
	}
	return int64(f.results)
}

// function plans the body of function i of those that the module defines, which must be
// valid.
func (p *plan) function(i int) error {
	body := &p.m.Bodies[i]
	t := &p.m.Types[p.m.Funcs[i]]
	p.points, p.pieces, p.bulk, p.dead = p.points[:0], p.pieces[:0], false, 0
	p.frames = append(p.frames[:0], frame{results: len(t.Results)})
	p.open(body.Code.Start, -1, p.policy.freeCalls)
	p.cost = callPrice + int64(len(t.Params)+len(t.Results)+body.Count) + int64(max(0, body.Count-freeLocals))*localBytes
	w := p.m.Walk(body.Code)
	var in wasm.Instr
	for w.Next(&in) {
		if p.dead > 0 && p.skip(&in) {
			continue
		}
		p.cost += price(in.Op)
		p.step(&in)
	}
	return w.Err()
}

// skip passes over an instruction of dead code and reports whether it was one: the end
// or else that closes the block with the dead code is not.
func (p *plan) skip(in *wasm.Instr) bool {
	switch in.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
		p.dead++
	case wasm.OpElse:
		return p.dead > 1
	case wasm.OpEnd:
		if p.dead == 1 {
			return false
		}
		p.dead--
	}
	return true
}

func (p *plan) step(in *wasm.Instr) {
	switch in.Op {
	case wasm.OpBlock:
		p.enter(in)
	case wasm.OpLoop:
		p.enter(in)
		p.close()
		p.open(in.End, -1, p.policy.freeLoops)
		p.cost = headPrice
	case wasm.OpIf:
		p.enter(in)
		p.next(in.End)
	case wasm.OpElse, wasm.OpEnd:
		p.join(in)
	case wasm.OpBrIf:
		p.cost += p.arity(in.X)
		p.next(in.End)
	case wasm.OpBr, wasm.OpBrTable:
		p.cost += p.arity(in.X)
		p.die()
	case wasm.OpReturn:
		p.cost += int64(p.frames[0].results)
		p.die()
	case wasm.OpUnreachable:
		p.die()
	case wasm.OpMemoryGrow, wasm.OpMemoryInit, wasm.OpMemoryCopy, wasm.OpMemoryFill,
		wasm.OpTableGrow, wasm.OpTableInit, wasm.OpTableCopy, wasm.OpTableFill:
		p.bulk = true
		p.points = append(p.points, point{at: in.Start, bulk: in.Op, off: p.policy.freeBulk})
	}
}

func (p *plan) die() {
	p.close()
	p.dead = 1
}

// enter opens a block in the piece that is open or, for a loop and an if, is about to end.
func (p *plan) enter(in *wasm.Instr) {
	params, results := p.m.Arity(in.Block)
	p.frames = append(p.frames, frame{in.Op == wasm.OpLoop, params, results, len(p.pieces)})
}

// join begins a piece where control may come from several places: at an else, and behind
// an end. What has surely run before is the piece in which the block was opened.
func (p *plan) join(in *wasm.Instr) {
	if p.dead == 0 {
		p.close()
	}
	p.dead = 0
	f := p.frames[len(p.frames)-1]
	if in.Op == wasm.OpEnd {
		p.frames = p.frames[:len(p.frames)-1]
		if len(p.frames) == 0 {
			return // the function's end
		}
	}
	p.open(in.End, p.pieces[f.piece], p.policy.freePieces)
}
