package pipeline

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/sampling"
)

// Limits of one sequence.
const (
	maxAtPosition = 32 // rewinds at one position
	sampledFactor = 4  // tokens sampled, as a multiple of the most that the text may have
	ringBytes     = 32 << 20
	textFactor    = 4 // bytes that a text may grow to, as a multiple of what came in
	textLeast     = 4 << 10
)

// Options describe a sequence.
type Options struct {
	Plugins     []Spec // in the order of the request
	Vocab       int
	Seed        uint64
	Sequence    int
	Temperature float64 // of the request; 0: greedy
	Single      bool    // the filters leave the likeliest token alone, whatever the temperature
	Max         int     // tokens that the text may have
	Suppressed  []int32 // tokens that never come
	Changes     bool    // what plugins do to each token is noted
	Now         func() time.Time
	// Tokenize turns a prompt that a plugin rewrote into tokens, Detokenize the tokens of
	// one into its text; plugins that rewrite none need neither.
	Tokenize   func(text string) ([]int32, error)
	Detokenize func(tokens []int32) string
	// Warn hears of plugins that leave the request.
	Warn func(*Error)
}

// greedy tells whether the likeliest token comes at each step, where no plugin chooses.
func (o *Options) greedy() bool { return o.Temperature == 0 || o.Single }

// Pipeline is the plugins of one sequence.
type Pipeline struct {
	o       Options
	plugins []*plugin // in the order of their slots
	chooser *plugin   // nil: the draw chooses
	asked   string    // the prompt
	unread  error     // why what a plugin made of it cannot be read
	left    error     // whoever asked waits no longer: the error of a context while a plugin opened

	tokens []int32 // prompt and text
	prompt int     // tokens of the prompt
	forced []int32 // tokens that come next
	forcer *plugin // whose they are
	taken  int     // of these, those that came
	stop   abi.StopReason

	// What Needs reads: written while nothing is planned.
	step  int            // that comes next
	awake int            // first step at which some plugin acts
	needs sampling.Needs // of such a step

	// What is being worked on.
	d           *sampling.Distribution
	temperature float64
	before      sampling.Saved // the distribution before the plugin that acts
	held        bool           // before is valid
	moves       bool           // that plugin changed something of it
	was         int32          // token that would have come before that
	met         int            // candidates that there were then
	mover       *plugin        // the latest one that changed something; nil: none, or it was told what that did
	effect      Change         // what it did, as far as known
	choice      int32
	chosen      bool
	in          []byte // text for a hook
	last        bool   // the text ends with it
	most        int    // bytes that it may grow to
	replayed    int    // tokens of the text that a new instance has heard of, with the one it hears of; −1: none is replayed
	v           Verdict

	asker    *plugin        // of the latest rewind
	instead  []int32        // tokens that it forces in the place of those taken back
	stopping abi.StopReason // why it ends the text there; 0: it does not
	holdback int
	sampled  int
	rewinds  map[int]int // by position
	ring     ring

	// Buffers.
	edits   []sampling.Edit
	changes []Change // to the token that is being made
	cands   []sampling.Candidate
	text    []byte
	given   []byte
}

var (
	_ sampling.Plugins = (*Pipeline)(nil)
	_ sampling.Watcher = (*Pipeline)(nil)
)

// plugin is one plugin of a sequence.
type plugin struct {
	spec *Spec
	in   Instance // nil: it is not in the request
	key  uint64   // of its random words

	early     bool // acts before logit_bias
	actor     bool // has plan or logits
	restarted bool
	wake      int        // first step at which it acts
	planned   abi.Action // of the present step
	asked     bool       // to plan it
	replan    bool       // it is a new instance, which did not plan it
	planTemp  float64
	hist      history
	gathered  []int32
	seen      *seen // what its prompt hook saw; nil: it was not called

	report Report
}

// acts tells whether a plugin acts at a step.
func (g *plugin) acts(step int) bool { return g.in != nil && g.actor && g.wake <= step }

// slotOrder is where a slot's plugins run.
var slotOrder = map[abi.Slot]int{
	abi.SlotConstrain: 0, abi.SlotBias: 1, abi.SlotText: 2,
	abi.SlotTruncate: 3, abi.SlotTemperature: 4, abi.SlotChoose: 5,
}

// firstLate is the first place behind logit_bias and penalties.
const firstLate = 3

// ErrTwoChoosers says that two plugins want to pick the token.
var ErrTwoChoosers = errors.New("pipeline: at most one plugin may choose the token")

// New opens the plugins of a sequence. With an *Error a plugin that must not fail did; the
// error of a context is that of one whose request ended while it waited to open. With any
// error the pipeline is closed and good for nothing but its Reports.
func New(o Options) (*Pipeline, error) {
	p := &Pipeline{o: o, replayed: -1}
	for i := range o.Plugins {
		s := &o.Plugins[i]
		sum := sha256.Sum256([]byte(s.Manifest.Name))
		g := &plugin{spec: s, early: slotOrder[s.Manifest.Slot] < firstLate}
		g.key = o.Seed ^ binary.LittleEndian.Uint64(sum[:])
		g.report = Report{Name: s.Manifest.Name, Version: s.Manifest.Version, Hash: s.Hash, Outcome: OutcomeOK}
		if o.greedy() && s.idleWhenGreedy() {
			g.report.Outcome, g.report.Reason = OutcomeSkipped, ReasonGreedy
		}
		p.plugins = append(p.plugins, g)
	}
	slices.SortStableFunc(p.plugins, func(a, b *plugin) int {
		return cmp.Compare(slotOrder[a.spec.Manifest.Slot], slotOrder[b.spec.Manifest.Slot])
	})
	for i, g := range p.plugins {
		if g.report.Reason != "" {
			continue
		}
		if err := p.begin(g); err != nil {
			for _, later := range p.plugins[i+1:] {
				later.report.Outcome, later.report.Reason = OutcomeSkipped, cmp.Or(later.report.Reason, ReasonUnopened)
			}
			p.Close()
			return p, err
		}
	}
	return p, nil
}

// begin opens a plugin and gives it its place.
func (p *Pipeline) begin(g *plugin) error {
	if e := p.open(g); e != nil {
		if p.left != nil {
			g.report.Outcome, g.report.Reason = OutcomeSkipped, ReasonUnopened
			return p.left
		}
		return asError(p.failed(g, e))
	}
	if g.in == nil {
		return nil
	}
	p.holdback = max(p.holdback, g.spec.Manifest.View.Holdback)
	if g.in.Has(abi.HookChoose) {
		if p.chooser != nil {
			return ErrTwoChoosers
		}
		p.chooser = g
	}
	return nil
}

// Close gives all instances back. It may be called twice.
func (p *Pipeline) Close() {
	for _, g := range p.plugins {
		g.leave()
	}
	p.ring = ring{}
}

// Holdback is how many tokens of text must be held back.
func (p *Pipeline) Holdback() int { return p.holdback }

// RefusesDrafts tells whether a plugin wants no tokens to be guessed ahead.
func (p *Pipeline) RefusesDrafts() bool {
	return slices.ContainsFunc(p.plugins, func(g *plugin) bool {
		return g.in != nil && g.spec.Manifest.Draft == abi.DraftRefuse
	})
}

// Limit lowers how many tokens the text may have, before Begin.
func (p *Pipeline) Limit(n int) { p.o.Max = min(p.o.Max, n) }

// Begin starts the text behind a prompt.
func (p *Pipeline) Begin(prompt []int32) {
	p.tokens = append(make([]int32, 0, len(prompt)+p.o.Max), prompt...)
	p.prompt = len(prompt)
	for _, g := range p.plugins {
		g.hist.forget() // it may hold another prompt
	}
	p.settle()
}

// settle brings what Needs reads up to date.
func (p *Pipeline) settle() {
	p.step = len(p.tokens) - p.prompt
	p.awake, p.needs = math.MaxInt, sampling.Needs{View: sampling.Top, K: 1}
	row := false
	for _, g := range p.plugins {
		if g.in == nil || !g.actor {
			continue
		}
		p.awake = min(p.awake, g.wake)
		l := g.in.Layout()
		row = row || !g.looksOnly(l)
		p.needs.K, p.needs.Stats = max(p.needs.K, l.CandCap), true
	}
	if p.chooser != nil && p.chooser.in != nil {
		p.awake = 0
		row = row || p.o.greedy() // nothing is cut before it chooses
	}
	if p.pending() { // the log-probability of what is forced is wanted
		p.awake, row = 0, true
	}
	if row {
		p.needs = sampling.Needs{View: sampling.Row}
	}
}

// looksOnly tells whether a plugin looks at the best tokens and at statistics, and at most
// cuts the tokens to some of those or sets the temperature. One that plans may force a
// token, whose log-probability is wanted then, and an auxiliary sequence has rows to
// compare with.
func (g *plugin) looksOnly(l *abi.Layout) bool {
	return l.EditCap == 0 && l.Mask == 0 && l.Full == 0 && l.GatherN == 0 &&
		!g.in.Has(abi.HookPlan) && !g.spec.Manifest.Can(abi.CapAuxSeq)
}

// Needs implements sampling.Plugins.
func (p *Pipeline) Needs(more int) sampling.Needs {
	if p.step+more >= p.awake {
		return p.needs
	}
	return sampling.Needs{View: sampling.Best}
}
