package plugintest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/rowstats"
	"ganglion/plugins/sampling"
)

// scene is a request that a plugin is put through.
type scene struct {
	name        string
	vocab       *Vocabulary
	seed        uint32
	prompt      int             // tokens
	steps       int             // tokens that are made
	max         int             // tokens that the text may have; 0: steps
	temperature float64         // 0: greedy
	row         func([]float32) // changes every row; nil: does not
	rows        int             // different rows; 0: one for each step
	config      []byte
	others      []other            // that run beside it
	rewinds     func(step int) int // tokens that another plugin takes back; nil: none
	policy      pipeline.Policy    // "": fail
}

// session is a scene being played.
type session struct {
	ctx         context.Context
	sc          *scene
	plugin      *host.Plugin
	interpreted bool // the plugin's runtime interprets
	program     bool // it has gg_run
	hashed      bool // calls carry hashes
	sized       bool // pages is kept
	breakAt     func(h abi.Hook, step int) bool
	audit       *audit

	calls  []call
	own    int // times that the plugin took tokens back
	pages  int
	idle   bool // the plugin is not interested
	tokens []int32
	text   []byte
	tail   []byte // bytes that are no whole character yet

	row     []float32
	kept    []sampling.Input
	scratch sampling.Scratch
	pipe    *pipeline.Pipeline
	chain   *sampling.Chain
}

// play plays a scene to its end, which is the number of steps or what ends a text. The
// error is the plugin's.
func (s *session) play() (err error) {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.pipe.Close()
	for len(s.tokens) < s.sc.steps {
		done, err := s.step()
		if err != nil {
			return fmt.Errorf("%s: step %d: %w", s.sc.name, len(s.tokens), err)
		}
		if done {
			break
		}
	}
	if len(s.tokens) == s.sc.limit() {
		if _, err := s.say(nil, true); err != nil {
			return fmt.Errorf("%s: the end of the text: %w", s.sc.name, err)
		}
	}
	s.pipe.End(abi.StopStop)
	for _, r := range s.pipe.Reports() {
		if r.Hash == s.plugin.Hash() {
			s.own = r.Rewinds
		}
		if r.Error != nil && r.Outcome != pipeline.OutcomeRestarted {
			return fmt.Errorf("%s: %w", s.sc.name, r.Error)
		}
	}
	return nil
}

func (sc *scene) limit() int {
	if sc.max > 0 {
		return sc.max
	}
	return sc.steps
}

// begin opens the plugins and lets them see the prompt.
func (s *session) begin() (err error) {
	sc := s.sc
	size := sc.vocab.Size()
	s.row = make([]float32, size)
	prompt := make([]int32, sc.prompt)
	for i := range prompt {
		prompt[i] = int32(firstWord(size) + int(mix(sc.seed+uint32(i))>>8)%(size-firstWord(size)))
	}
	text := string(sc.vocab.Decode(prompt))
	specs := []pipeline.Spec{s.spec(s.plugin, sc.config, prompt, text, true)}
	for _, o := range sc.others {
		specs = append(specs, s.spec(o.plugin, o.config, prompt, text, false))
	}
	if sc.rewinds != nil {
		specs = append(specs, newRewinder(sc.rewinds).spec())
	}
	s.pipe, err = pipeline.New(pipeline.Options{
		Plugins: specs, Vocab: size, Seed: uint64(sc.seed), Temperature: sc.temperature, Max: sc.limit(), Now: time.Now,
		Tokenize: func(t string) ([]int32, error) { return sc.vocab.Encode([]byte(t), false, false), nil },
	})
	if err != nil {
		return fmt.Errorf("%s: %w", sc.name, err)
	}
	s.chain, err = sampling.New(sampling.Params{Vocab: size, Temperature: sc.temperature, TopP: 1, Seed: int64(sc.seed), Plugins: s.pipe})
	if err == nil {
		prompt, err = s.pipe.Prompt(text, prompt)
	}
	if err != nil {
		s.pipe.Close()
		return fmt.Errorf("%s: %w", sc.name, err)
	}
	s.pipe.Begin(prompt)
	return nil
}

// spec is a plugin as the scene's request chose it; the one that is tested is watched.
func (s *session) spec(p *host.Plugin, config []byte, prompt []int32, text string, watched bool) pipeline.Spec {
	sc := s.sc
	policy := sc.policy
	if policy == "" {
		policy = pipeline.Fail
	}
	return pipeline.Spec{Manifest: p.Manifest(), Hash: p.Hash(), OnError: policy, Open: func(spent pipeline.Spent) (pipeline.Instance, error) {
		opening := call{hook: abi.HookOpen}
		in, err := p.Open(s.ctx, host.Open{
			Config:  config,
			Request: host.Request{Temperature: sc.temperature, TopP: 1, MaxTokens: sc.limit(), Seed: uint64(sc.seed)},
			Model:   host.Model{Name: "plugintest", Vocab: sc.vocab.Size(), Context: 1 << 20},
			Prompt:  len(prompt), Text: text, Services: s.services(),
			Spent: func(fuel int64, took time.Duration) { opening.fuel, opening.time = fuel, took; spent(fuel, took) },
		})
		if opening.failed = err != nil; watched {
			s.calls = append(s.calls, opening)
		}
		if err != nil {
			return nil, err
		}
		if in == nil {
			s.idle = s.idle || watched
			return nil, nil
		}
		if !watched {
			return in, nil
		}
		return &tap{Instance: in, s: s}, nil
	}}
}

// services are what plugins may use: the same in every run, whatever the clock says.
func (s *session) services() host.Services {
	return host.Services{
		Vocab: s.sc.vocab, Store: emptyStore{}, Sequences: &sequences{s: s},
		Text:  func(int) []byte { return s.text },
		Clock: func() int64 { return int64(len(s.tokens)) },
		Meta:  func(string, []byte) {},
	}
}

// step makes one token; done tells that the text ends.
func (s *session) step() (done bool, err error) {
	if err := s.pipe.Plan(); err != nil {
		return false, err
	}
	if s.pipe.Stopped() != 0 {
		return true, nil
	}
	step := len(s.tokens)
	id, ok := s.pipe.NextForced()
	if !ok {
		in := s.input(step)
		c, err := s.chain.Choose(&in, s.sc.prompt+step, &s.scratch)
		if err != nil {
			return false, err
		}
		id = c.ID
	}
	s.chain.Accept(id)
	s.tokens = append(s.tokens, id)
	v, err := s.pipe.Accept(id)
	if err != nil {
		return false, err
	}
	if v.Rewind > 0 {
		return false, s.rewind(v.Rewind)
	}
	if v.Stop != 0 || s.sc.vocab.EOG(id) {
		return true, nil
	}
	s.text = append(s.text, s.sc.vocab.Bytes(id)...)
	v, err = s.say(s.sc.vocab.Bytes(id), false)
	if err == nil && v.Rewind > 0 {
		return false, s.rewind(v.Rewind)
	}
	return v.Stop != 0, err
}

// say shows plugins text in whole characters; bytes that are none become U+FFFD.
func (s *session) say(b []byte, last bool) (v pipeline.Verdict, err error) {
	s.tail = append(s.tail, b...)
	var out []byte
	for len(s.tail) > 0 && (last || utf8.FullRune(s.tail)) {
		r, n := utf8.DecodeRune(s.tail)
		out, s.tail = utf8.AppendRune(out, r), s.tail[n:]
	}
	if len(out) == 0 && !last {
		return v, nil
	}
	_, v, err = s.pipe.Text(out, last)
	return v, err
}

// rewind takes tokens back.
func (s *session) rewind(n int) error {
	for range n {
		last := len(s.tokens) - 1
		s.chain.Retract(s.tokens[last])
		s.tokens = s.tokens[:last]
	}
	s.text, s.tail = s.sc.vocab.Decode(s.tokens), nil
	return s.pipe.Rewind(n)
}

// input is what the model says of a step.
func (s *session) input(step int) sampling.Input {
	n := s.sc.rows
	if n == 0 {
		return inputOf(s.fill(s.row, step))
	}
	for len(s.kept) <= step%n {
		s.kept = append(s.kept, inputOf(s.fill(make([]float32, len(s.row)), len(s.kept))))
	}
	return s.kept[step%n]
}

func (s *session) fill(row []float32, step int) []float32 {
	Row(row, s.sc.seed, step)
	if s.sc.row != nil {
		s.sc.row(row)
	}
	return row
}

// inputOf makes the head of a row.
func inputOf(row []float32) sampling.Input {
	in := sampling.Input{Row: row, Max: none}
	for i, l := range row {
		if l > in.Max {
			in.Best, in.Max = int32(i), l
		}
	}
	m := rowstats.ScanMass(row, in.Max)
	in.LogSumExp = float32(float64(in.Max) + math.Log(m.Sum))
	return in
}

// emptyStore remembers nothing.
type emptyStore struct{}

func (emptyStore) Read(string) map[string][]byte          { return nil }
func (emptyStore) Commit(string, map[string][]byte) error { return nil }

// sequences are auxiliary sequences whose rows come from seeds of their own.
type sequences struct {
	s    *session
	open int
	row  []float32
	at   int // step of the row
	of   int // its sequence
}

var errSequences = errors.New("plugintest: all sequences are open")

func (q *sequences) Open([]int32) (int, error) {
	if q.open == abi.MaxAuxiliary {
		return 0, errSequences
	}
	q.open++
	return q.open, nil
}

func (q *sequences) Row(seq int) []float32 {
	if seq < 1 || seq > q.open {
		return nil
	}
	if q.row == nil || q.at != len(q.s.tokens) || q.of != seq {
		if q.row == nil {
			q.row = make([]float32, len(q.s.row))
		}
		q.at, q.of = len(q.s.tokens), seq
		Row(q.row, q.s.sc.seed+uint32(seq)*7919, q.at)
	}
	return q.row
}

func (q *sequences) Stats(seq int) (host.Stats, bool) {
	row := q.Row(seq)
	if row == nil {
		return host.Stats{}, false
	}
	return rowstats.Of(row), true
}
