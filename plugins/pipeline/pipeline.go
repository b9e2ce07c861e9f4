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
	Max         int     // tokens that the text may have
	Now         func() time.Time
	// Tokenize turns a prompt that a plugin rewrote into tokens.
	Tokenize func(text string) []int32
	// Warn hears of plugins that leave the request.
	Warn func(*Error)
}

func (o *Options) greedy() bool { return o.Temperature == 0 }

// Pipeline is the plugins of one sequence.
type Pipeline struct {
	o       Options
	plugins []*plugin // in the order of their slots
	chooser *plugin   // nil: the draw chooses
	asked   string    // the prompt

	tokens []int32 // prompt and text
	prompt int     // tokens of the prompt
	forced []int32 // tokens that come next
	taken  int     // of these, those that came
	stop   abi.StopReason

	// What Needs reads: written while nothing is planned.
	step  int // that comes next
	awake int // first step at which some plugin acts

	// What is being worked on.
	d           *sampling.Distribution
	temperature float64
	choice      int32
	chosen      bool
	in          []byte // text for a hook
	last        bool   // the text ends with it
	v           Verdict

	asker    *plugin // of the latest rewind
	holdback int
	sampled  int
	rewinds  map[int]int // by position
	ring     ring

	// Buffers.
	edits []sampling.Edit
	cands []sampling.Candidate
	text  []byte
	given []byte
}

var _ sampling.Plugins = (*Pipeline)(nil)

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
	planTemp  float64
	hist      history
	gathered  []int32

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

// New opens the plugins of a sequence. With an *Error a plugin that must not fail did;
// the others are closed then.
func New(o Options) (*Pipeline, error) {
	p := &Pipeline{o: o}
	for i := range o.Plugins {
		s := &o.Plugins[i]
		if o.greedy() && s.Manifest.ArgmaxInvariant {
			continue
		}
		sum := sha256.Sum256([]byte(s.Manifest.Name))
		g := &plugin{spec: s, early: slotOrder[s.Manifest.Slot] < firstLate}
		g.key = o.Seed ^ binary.LittleEndian.Uint64(sum[:])
		g.report = Report{Name: s.Manifest.Name, Version: s.Manifest.Version, Hash: s.Hash, Outcome: OutcomeOK}
		p.plugins = append(p.plugins, g)
	}
	slices.SortStableFunc(p.plugins, func(a, b *plugin) int {
		return cmp.Compare(slotOrder[a.spec.Manifest.Slot], slotOrder[b.spec.Manifest.Slot])
	})
	for _, g := range p.plugins {
		if e := p.open(g); e != nil {
			if e = p.failed(g, e); e != nil {
				p.Close()
				return nil, e
			}
		}
		if g.in == nil {
			continue
		}
		p.holdback = max(p.holdback, g.spec.Manifest.View.Holdback)
		if g.in.Has(abi.HookChoose) {
			if p.chooser != nil {
				p.Close()
				return nil, ErrTwoChoosers
			}
			p.chooser = g
		}
	}
	return p, nil
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

// Begin starts the text behind a prompt.
func (p *Pipeline) Begin(prompt []int32) {
	p.tokens = append(make([]int32, 0, len(prompt)+p.o.Max), prompt...)
	p.prompt = len(prompt)
	p.settle()
}

// settle brings what Needs reads up to date.
func (p *Pipeline) settle() {
	p.step = len(p.tokens) - p.prompt
	p.awake = math.MaxInt
	for _, g := range p.plugins {
		if g.in != nil && g.actor {
			p.awake = min(p.awake, g.wake)
		}
	}
	if p.chooser != nil && p.chooser.in != nil {
		p.awake = 0
	}
	if p.taken < len(p.forced) {
		p.awake = 0 // the log-probability of what is forced is wanted
	}
}

// Needs implements sampling.Plugins.
func (p *Pipeline) Needs(more int) sampling.Needs {
	if p.step+more >= p.awake {
		return sampling.Needs{View: sampling.Row}
	}
	return sampling.Needs{View: sampling.Best}
}
