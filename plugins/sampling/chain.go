package sampling

import (
	"errors"
	"fmt"
	"math"
)

// View says how much of a row of logits is needed.
type View uint8

// The views, from least to most.
const (
	Best View = iota // the best token, its logit and the log-sum-exp
	Top              // the best K as well
	Row              // the whole row as well
)

// Needs is what a chain must see to choose the next token.
type Needs struct {
	View  View
	K     int  // for Top
	Stats bool // for Top: and the statistics of the whole row
}

// Input is what the model said about one position. A chain that needs Best reads
// the first three fields; one that needs Top reads IDs and Logits, best first,
// ties by lower id, and Stats where it asks for them; one that needs Row reads Row. The
// slices are only read.
type Input struct {
	Best      int32
	Max       float32
	LogSumExp float32

	IDs    []int32   // [K]
	Logits []float32 // [K]
	Row    []float32 // [vocabulary]

	Stats Stats // of the row, where it is not given itself; zero: not known
}

// Params are the resolved values of a chain.
type Params struct {
	Vocab int // size of the vocabulary

	Suppressed       []int32 // never produced
	Bias             []Bias
	PresencePenalty  float64
	FrequencyPenalty float64
	Stages           []Stage // further stages; with any, the whole row is needed
	Plugins          Plugins // nil: there are none
	Watcher          Watcher // nil: nobody hears what built-in stages do; else the whole row is needed where they do something

	Temperature float64 // ≥ 0; 0 = greedy
	TopK        int     // ≥ 0; 0 = off
	TopP        float64 // [0, 1]; 0 = most likely token only, 1 = off
	MinP        float64 // [0, 1]; 0 = off
	Seed        int64

	TopLogprobs int // alternatives wanted of each step
}

// maxTop is the largest K worth a selection: beyond it the whole row is read. With
// plugins it is what a GPU selects.
const (
	maxTop        = 1024
	maxTopPlugins = 256
)

// ErrNoCandidate says that no token can be chosen: every one is banned, or the
// logits are not numbers.
var ErrNoCandidate = errors.New("sampling: no token has a finite logit")

// Choice is the token of one step.
type Choice struct {
	ID      int32
	Logprob float64 // in the model's own distribution, see Logprob
}

// Chain chooses the tokens of one sequence. It is not safe for concurrent use.
type Chain struct {
	p       Params
	edits   []Stage // before the temperature
	filters []Stage // temperature and after
	cuts    []Stage // the filters after the temperature

	editNames []string // of edits; "": not told
	cutNames  []string // of cuts
	penalty   penaltyStage
	lowers    bool // edits only lower logits, and only those of listed tokens
	listed    int  // tokens listed in Suppressed and Bias
}

// New makes a chain. The slices of p must not change afterwards.
func New(p Params) (*Chain, error) {
	unit := func(v float64) bool { return v >= 0 && v <= 1 }
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	switch {
	case p.Vocab <= 0 || p.TopK < 0 || p.TopLogprobs < 0:
		return nil, fmt.Errorf("sampling: vocabulary %d, top_k %d, %d alternatives", p.Vocab, p.TopK, p.TopLogprobs)
	case !(p.Temperature >= 0) || !finite(p.Temperature):
		return nil, fmt.Errorf("sampling: temperature %g", p.Temperature)
	case !unit(p.TopP) || !unit(p.MinP):
		return nil, fmt.Errorf("sampling: top_p %g, min_p %g outside [0, 1]", p.TopP, p.MinP)
	case !finite(p.PresencePenalty) || !finite(p.FrequencyPenalty):
		return nil, fmt.Errorf("sampling: penalties %g, %g", p.PresencePenalty, p.FrequencyPenalty)
	}
	c := &Chain{
		p:       p,
		penalty: penaltyStage{presence: p.PresencePenalty, frequency: p.FrequencyPenalty},
		lowers:  len(p.Stages) == 0 && p.PresencePenalty >= 0 && p.FrequencyPenalty >= 0,
		listed:  len(p.Suppressed) + len(p.Bias),
	}
	for _, b := range p.Bias {
		if b.ID < 0 || int(b.ID) >= p.Vocab || !finite(float64(b.Value)) {
			return nil, fmt.Errorf("sampling: bias %g for token %d of %d", b.Value, b.ID, p.Vocab)
		}
		c.lowers = c.lowers && b.Value <= 0
	}
	c.build()
	return c, nil
}

// build lists the stages in their order, leaving out those that are off.
func (c *Chain) build() {
	p := &c.p
	edit := func(name string, s ...Stage) {
		for range s {
			c.editNames = append(c.editNames, name)
		}
		c.edits = append(c.edits, s...)
	}
	cut := func(name string, s Stage) { c.cuts, c.cutNames = append(c.cuts, s), append(c.cutNames, name) }
	if len(p.Suppressed) > 0 {
		edit("", suppressStage(p.Suppressed))
	}
	if len(p.Bias) > 0 {
		edit(StageBias, biasStage(p.Bias))
	}
	if !c.penalty.off() {
		edit(StagePenalties, &c.penalty)
	}
	edit("", p.Stages...)

	if p.TopK > 0 && p.TopK < p.Vocab {
		cut(StageTopK, topKStage(p.TopK))
	}
	if p.TopP < 1 {
		cut(StageTopP, topPStage(p.TopP))
	}
	if p.MinP > 0 {
		cut(StageMinP, minPStage(p.MinP))
	}
	if p.Temperature != 1 {
		c.filters = append(c.filters, temperatureStage(p.Temperature))
	}
	c.filters = append(c.filters, c.cuts...)
}

// CutsToOne tells whether the filters leave the best candidate alone, whatever the
// temperature.
func (p *Params) CutsToOne() bool { return p.TopP == 0 || p.TopK == 1 }

// greedy tells whether the chain always takes the best candidate.
func (c *Chain) greedy() bool { return c.p.Temperature == 0 || c.cutsToOne() }

// cutsToOne tells whether the filters leave the best candidate alone.
func (c *Chain) cutsToOne() bool { return c.p.CutsToOne() }

// edited returns the number of tokens whose logits the next step may change.
func (c *Chain) edited() int { return c.editedAfter(0) }

// editedAfter returns the largest number of tokens whose logits a step may change
// after more tokens were accepted.
func (c *Chain) editedAfter(more int) int {
	n := c.listed
	if !c.penalty.off() {
		n += len(c.penalty.ids) + more
	}
	return n
}

// Needs returns what the next step must see. Where edits only lower logits, the
// best K of the edited row are among the best K plus the edited tokens of the raw
// one, so that many are enough.
func (c *Chain) Needs() Needs { return c.NeedsAfter(0) }

// NeedsAfter returns what a step must see before which more tokens are accepted,
// whichever they are. Seeing more than Needs asks for changes no choice.
func (c *Chain) NeedsAfter(more int) Needs {
	var seen Needs
	if c.p.Plugins != nil {
		seen = c.p.Plugins.Needs(more)
	}
	edited := c.editedAfter(more)
	switch {
	case c.watched(edited):
		return Needs{View: Row}
	case seen.View == Row || seen.View == Top && edited > 0:
		return Needs{View: Row} // what was edited has other statistics
	case seen.View == Top:
		return c.needsBeside(seen)
	}
	k := c.p.TopK
	if c.greedy() {
		k = 1
	}
	if k == 0 || len(c.p.Stages) > 0 || (edited > 0 && !c.lowers) {
		return Needs{View: Row}
	}
	k = min(max(k+edited, c.p.TopLogprobs), c.p.Vocab)
	switch {
	case k > maxTop:
		return Needs{View: Row}
	case c.greedy() && edited == 0 && c.p.TopLogprobs == 0:
		return Needs{View: Best}
	}
	return Needs{View: Top, K: k}
}

// watched tells whether somebody hears of a step that changes this many tokens' logits.
func (c *Chain) watched(edited int) bool {
	return c.p.Watcher != nil && (edited > 0 || !c.greedy() && len(c.filters) > 0)
}

// needsBeside is what a step without edits needs where plugins look at the best tokens
// and at statistics.
func (c *Chain) needsBeside(seen Needs) Needs {
	k := c.p.TopK
	if c.greedy() {
		k = 1
	}
	if k == 0 || len(c.p.Stages) > 0 {
		return Needs{View: Row}
	}
	k = min(max(k, seen.K, c.p.TopLogprobs), c.p.Vocab)
	if k > maxTopPlugins {
		return Needs{View: Row}
	}
	return Needs{View: Top, K: k, Stats: seen.Stats}
}

// Choose picks the token at a position of the sequence from what Needs asked for.
func (c *Chain) Choose(in *Input, position int, s *Scratch) (Choice, error) {
	if c.greedy() && len(c.p.Stages) == 0 && c.edited() == 0 && (c.p.Plugins == nil || in.Row == nil && len(in.IDs) == 0) {
		if math.IsNaN(float64(in.Max)) || math.IsInf(float64(in.Max), 0) {
			return Choice{}, ErrNoCandidate
		}
		return Choice{ID: in.Best, Logprob: Logprob(in.Max, in.LogSumExp)}, nil
	}
	if c.p.Plugins != nil || c.watched(c.edited()) {
		return c.chooseWith(in, position, s)
	}
	d := s.load(in)
	for _, e := range c.edits {
		e.Apply(d)
	}
	var pick Candidate
	var ok bool
	if c.greedy() {
		pick, ok = d.best()
	} else {
		for _, f := range c.filters {
			f.Apply(d)
		}
		pick, ok = draw(d, uniform(c.p.Seed, position))
	}
	if !ok {
		return Choice{}, ErrNoCandidate
	}
	return Choice{ID: pick.ID, Logprob: Logprob(in.logit(pick.ID), in.LogSumExp)}, nil
}

// Accept counts a chosen token; call it once for each token that joins the text.
func (c *Chain) Accept(id int32) {
	if !c.penalty.off() {
		c.penalty.accept(id)
	}
}

// Retract takes back the latest token that was accepted.
func (c *Chain) Retract(id int32) {
	if !c.penalty.off() {
		c.penalty.retract(id)
	}
}

// logit returns the model's own logit of a token.
func (in *Input) logit(id int32) float32 {
	if in.Row != nil {
		return in.Row[id]
	}
	for i, t := range in.IDs {
		if t == id {
			return in.Logits[i]
		}
	}
	return float32(math.NaN())
}
