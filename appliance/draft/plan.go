package draft

// minGain is what the guesses of a step must promise before any is run: less is noise.
const minGain = 1.03

// Bid is what one sequence would run beside its next token.
type Bid struct {
	Guesses []Guess
	Take    int // of these so many are run; set by Plan.Choose

	next  int     // guesses considered so far
	reach float64 // odds that the next one is reached and comes
}

// Plan deals the rows of a step out to guesses. Its buffers are reused.
type Plan struct {
	order []int // the bid of each guess, in the order of what it promises
}

// Choose sets Take of every bid so that the step makes the most tokens per second.
// rows is how many rows decode without guesses, extra what else the step takes in the
// units of the price, room how many guesses fit at most.
//
// A guess promises the product of its own odds and of those before it. Guesses are
// added in that order, and the best number of them wins; all numbers are tried, for
// the price of a step does not grow evenly with its rows.
func (p *Plan) Choose(bids []Bid, rows int, extra float64, room int, price *Price) {
	p.order = p.order[:0]
	for i := range bids {
		bids[i].Take, bids[i].next, bids[i].reach = 0, 0, 0
		bids[i].advance(1)
	}
	tokens := float64(len(bids))
	best, most := 0, minGain*tokens/(price.Of(rows)+extra)
	for range min(room, MaxRows-rows) {
		at := -1
		for i := range bids {
			if b := &bids[i]; b.reach > 0 && (at < 0 || b.reach > bids[at].reach) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		tokens += bids[at].reach
		bids[at].advance(bids[at].reach)
		p.order = append(p.order, at)
		if rate := tokens / (price.Of(rows+len(p.order)) + extra); rate > most {
			best, most = len(p.order), rate
		}
	}
	for _, at := range p.order[:best] {
		bids[at].Take++
	}
}

// advance goes on to the next guess, which is considered if those before it came, with
// odds so far.
func (b *Bid) advance(so float64) {
	b.reach = 0
	if b.next < len(b.Guesses) {
		b.reach = so * b.Guesses[b.next].Odds
		b.next++
	}
}
