package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ganglion/plugins/abi"
	"ganglion/plugins/rowstats"
	"ganglion/plugins/wasm"
)

// goldenTest is one line of ganglion.tests; ABI.md says what the fields mean.
type goldenTest struct {
	Name   string          `json:"name"`
	Config json.RawMessage `json:"config"`
	Vocab  int             `json:"vocab"`
	Seed   uint64          `json:"seed,string"`
	Prompt []int32         `json:"prompt"`
	Steps  []goldenStep    `json:"steps"`
}

type goldenStep struct {
	Hook        string    `json:"hook"`
	Step        uint32    `json:"step"`
	IDs         []uint32  `json:"ids"`
	Logits      []float32 `json:"logits"`
	Temperature float32   `json:"temperature"`
	Generated   []int32   `json:"generated"`
	Tokens      []int32   `json:"tokens"`
	Text        string    `json:"text"`
	Greedy      bool      `json:"greedy"`
	Want        struct {
		Actions     []string  `json:"actions"`
		Error       Code      `json:"error"`
		IDs         []uint32  `json:"ids"`
		Logits      []float32 `json:"logits"`
		Edits       [][3]any  `json:"edits"`
		Token       *uint32   `json:"token"`
		Temperature *float32  `json:"temperature"`
		Tokens      []uint32  `json:"tokens"`
		Text        *string   `json:"text"`
		Stop        *uint32   `json:"stop"`
		Backtrack   *uint32   `json:"backtrack"`
		Allowed     []uint32  `json:"allowed"`
	} `json:"want"`
}

// golden runs the tests that a file carries.
func (p *Plugin) golden(ctx context.Context, m *wasm.Module, until *deadline) error {
	text, ok := m.Custom(abi.SectionTests)
	if !ok {
		return nil
	}
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n > maxGoldenTests {
			return fmt.Errorf("golden tests: more than %d", maxGoldenTests)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := p.goldenLine(ctx, line, until); err != nil {
			return fmt.Errorf("golden test in line %d: %w", n, err)
		}
	}
	return nil
}

// errTests is what is wrong with tests that run into the deadline.
const errTests = "the tests take more than %v"

func (p *Plugin) goldenLine(ctx context.Context, line []byte, until *deadline) error {
	if _, err := abi.ParseJSON(line); err != nil { // names that stand twice, depth
		return err
	}
	t := goldenTest{Vocab: 1000}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return err
	}
	if t.Vocab > 1<<20 || len(t.Steps) == 0 {
		return errors.New("a vocabulary above 2^20, or no steps")
	}
	config, err := p.manifest.Schema.Fill(t.Config)
	if err != nil {
		return fmt.Errorf("%.64q: config: %w", t.Name, err)
	}
	generated := 0
	for _, s := range t.Steps {
		generated = max(generated, len(s.Generated)+len(s.Tokens), int(min(s.Step, 1<<16))+1)
	}
	i, err := p.Open(ctx, Open{
		Config: config, Prompt: len(t.Prompt), Model: Model{Name: "golden", Vocab: t.Vocab, Context: 1 << 17},
		Request:  Request{Temperature: 1, TopP: 1, MaxTokens: generated, Seed: t.Seed},
		Services: Services{Vocab: goldenVocab(min(t.Vocab, goldenEnd+1)), Sequences: &goldenSequences{vocab: t.Vocab}}, until: until,
	})
	if until.late() {
		if i != nil {
			_ = i.Close()
		}
		return fmt.Errorf(errTests, until.time)
	}
	if err != nil {
		return fmt.Errorf("%.64q: %w", t.Name, err)
	}
	if i == nil {
		return fmt.Errorf("%.64q: the plugin is not interested", t.Name)
	}
	defer func() { _ = i.Close() }()
	for n := range t.Steps {
		err := i.goldenStep(&t, &t.Steps[n])
		if until.late() {
			return fmt.Errorf(errTests, until.time)
		}
		if err != nil {
			return fmt.Errorf("%.64q: step %d: %w", t.Name, n, err)
		}
	}
	return nil
}

// goldenStep fills the frame, calls the hook and compares.
func (i *Instance) goldenStep(t *goldenTest, s *goldenStep) error {
	h := abi.HookNamed(s.Hook)
	if h <= abi.HookOpen || h == abi.HookRun || !i.Has(h) {
		return fmt.Errorf("the plugin has no hook %.16q", s.Hook)
	}
	if err := i.goldenFill(t, s, h); err != nil {
		return err
	}
	actions, _, err := i.Call(h)
	var e *Error
	if errors.As(err, &e) {
		if e.Code != s.Want.Error {
			return err
		}
		return nil
	}
	if err != nil || s.Want.Error != "" {
		return orError(err, fmt.Errorf("no error, want %s", s.Want.Error))
	}
	if want := strings.Join(s.Want.Actions, "|"); want != actions.String() && (want != "" || actions != 0) {
		return fmt.Errorf("actions %s, want %s", actions, want)
	}
	return i.goldenCompare(s)
}

func (i *Instance) putFloat(off int, v float32) { i.put(off, math.Float32bits(v)) }
func (i *Instance) getFloat(off int) float32    { return math.Float32frombits(i.get(off)) }

func (i *Instance) goldenFill(t *goldenTest, s *goldenStep, h abi.Hook) error {
	l := i.layout
	history := append(slices.Clone(t.Prompt), s.Generated...)
	first := 0
	if i.p.manifest.View.History.Kind == abi.HistoryGenerated {
		first = len(t.Prompt)
	}
	first = max(first, len(history)-l.HistoryCap)
	switch {
	case len(s.IDs) != len(s.Logits) || len(s.IDs) > abi.MaxCandidates || len(s.IDs) > 0 && l.CandCap == 0:
		return fmt.Errorf("%d ids and %d logits, there is room for %d", len(s.IDs), len(s.Logits), l.CandCap)
	case 4*len(s.Tokens) > l.InCap || len(s.Text) > l.InCap:
		return fmt.Errorf("more tokens or text than %d bytes", l.InCap)
	}
	flags := uint32(0)
	if s.Greedy {
		flags |= abi.FlagGreedy
	}
	i.put(abi.OffFlags, flags)
	i.put(abi.OffStep, s.Step)
	i.put(abi.OffPosition, uint32(len(t.Prompt))+s.Step)
	i.put(abi.OffNGenerated, s.Step)
	i.put(abi.OffLastToken, abi.NoToken)
	if n := len(history); n > 0 {
		i.put(abi.OffLastToken, uint32(history[n-1]))
	}
	i.put(abi.OffHistoryPos, uint32(first))
	i.put(abi.OffHistoryLen, 0)
	if l.HistoryCap > 0 {
		i.put(abi.OffHistoryLen, uint32(len(history)-first))
		for k, id := range history[first:] {
			i.put(l.History+4*k, uint32(id))
		}
	}
	shown := min(len(s.IDs), l.CandCap)
	for k, id := range s.IDs[:shown] {
		i.put(l.CandIDs+4*k, id)
		i.putFloat(l.CandLogits+4*k, s.Logits[k])
	}
	i.put(abi.OffCandN, uint32(shown))
	i.goldenStats(s.Logits, shown)
	i.putFloat(abi.OffTemperature, s.Temperature)
	for k, id := range s.Tokens {
		i.put(l.In+4*k, uint32(id))
		i.put(abi.OffToken, uint32(id))
	}
	i.put(abi.OffInN, uint32(len(s.Tokens)))
	if h == abi.HookText || h == abi.HookPrompt {
		i.put(abi.OffInN, uint32(copy(i.block[l.In:l.In+l.InCap], s.Text)))
	}
	for draw := range uint32(abi.RandomWords / 4) {
		for k, w := range i.words(s.Step, h, draw) {
			i.put(abi.OffRandom+16*int(draw)+4*k, w)
		}
	}
	return nil
}

// goldenStats writes the statistics of a vocabulary whose other tokens are all out, as a
// request computes them: the last bit is the same on every machine.
func (i *Instance) goldenStats(logits []float32, shown int) {
	var s Stats
	if len(logits) > 0 {
		s = rowstats.Of(logits)
	}
	i.putFloat(abi.OffMax, s.Max)
	i.putFloat(abi.OffMean, s.Mean)
	i.putFloat(abi.OffStd, s.Std)
	i.putFloat(abi.OffLogSumExp, s.LogSumExp)
	i.putFloat(abi.OffEntropy, s.Entropy)
	mass := 1.0
	for _, l := range logits[shown:] {
		mass -= math.Exp(float64(l - s.LogSumExp))
	}
	i.putFloat(abi.OffCandMass, float32(mass))
	i.put(abi.OffNFinite, uint32(s.Finite))
}

// goldenCompare holds what the guest wrote against those fields of want that are there.
func (i *Instance) goldenCompare(s *goldenStep) error {
	l, w := i.layout, &s.Want
	words := func(what string, n uint32, off int, want []uint32) error {
		if want == nil {
			return nil
		}
		have := make([]uint32, n)
		for k := range have {
			have[k] = i.get(off + 4*k)
		}
		if !slices.Equal(have, want) {
			return fmt.Errorf("%s %v, want %v", what, have, want)
		}
		return nil
	}
	if err := words("candidates", min(i.get(abi.OffCandN), uint32(l.CandCap)), l.CandIDs, w.IDs); err != nil {
		return err
	}
	for k, want := range w.Logits {
		if have := i.getFloat(l.CandLogits + 4*min(k, max(l.CandCap-1, 0))); !near(have, want) {
			return fmt.Errorf("logit %d is %g, want %g", k, have, want)
		}
	}
	if w.Allowed != nil {
		allowed := []uint32{}
		for id := range i.vocab {
			if l.Mask > 0 && i.block[l.Mask+int(id/8)]>>(id%8)&1 == 1 {
				allowed = append(allowed, id)
			}
		}
		if !slices.Equal(allowed, w.Allowed) {
			return fmt.Errorf("the mask allows %v, want %v", allowed, w.Allowed)
		}
	}
	if err := words("tokens", min(i.get(abi.OffOutN), uint32(l.OutCap/4)), l.Out, w.Tokens); err != nil {
		return err
	}
	if w.Text != nil {
		if have := string(i.block[l.Out:][:min(int(i.get(abi.OffOutN)), l.OutCap)]); have != *w.Text {
			return fmt.Errorf("text %q, want %q", have, *w.Text)
		}
	}
	for _, f := range []struct {
		what string
		off  int
		want *uint32
	}{{"token", abi.OffToken, w.Token}, {"stop", abi.OffStopReason, w.Stop}, {"backtrack", abi.OffBacktrack, w.Backtrack}} {
		if f.want != nil && i.get(f.off) != *f.want {
			return fmt.Errorf("%s %d, want %d", f.what, i.get(f.off), *f.want)
		}
	}
	if w.Temperature != nil && !near(i.getFloat(abi.OffTemperature), *w.Temperature) {
		return fmt.Errorf("temperature %g, want %g", i.getFloat(abi.OffTemperature), *w.Temperature)
	}
	return i.goldenEdits(w.Edits)
}

var opNames = []any{"ADD", "SET", "MUL_SIGNED", "BAN", "MIN", "MAX"}

func (i *Instance) goldenEdits(want [][3]any) error {
	if want == nil {
		return nil
	}
	n := int(min(i.get(abi.OffEditN), uint32(i.layout.EditCap)))
	if n != len(want) {
		return fmt.Errorf("%d edits, want %d", n, len(want))
	}
	for k, e := range want {
		b := i.block[i.layout.Edits+abi.EditBytes*k:]
		word := binary.LittleEndian.Uint32(b)
		v := math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
		id, ok1 := e[0].(float64)
		value, ok2 := e[2].(float64)
		op := slices.Index(opNames, e[1])
		if !ok1 || !ok2 || op < 0 {
			return fmt.Errorf("edit %d is not [id, op, value]", k)
		}
		if word != uint32(id)|uint32(op)<<abi.EditShift || abi.Op(op) != abi.OpBan && !near(v, float32(value)) {
			return fmt.Errorf("edit %d is %d %d %g, want %v", k, word&abi.EditID, word>>abi.EditShift, v, e)
		}
	}
	return nil
}

// near compares with the rounding of a text in mind.
func near(a, b float32) bool {
	return a == b || math.Abs(float64(a)-float64(b)) <= 1e-6*max(1, math.Abs(float64(b)))
}

// goldenVocab is the tokenizer of golden tests, with so many tokens: the bytes, and one that
// ends a text.
type goldenVocab int

// goldenEnd is the token that ends a text.
const goldenEnd = 256

// Size implements Vocabulary, as do the methods below.
func (v goldenVocab) Size() int { return int(v) }

// goldenKey is the name of these vocabularies, of which nothing is kept: they are small, and
// requests have no use for them.
const goldenKey = "golden tests"

// Key is the same for all of them.
func (goldenVocab) Key() string { return goldenKey }

// Bytes is the byte of a token.
func (goldenVocab) Bytes(id int32) []byte {
	if id < 0 || id >= goldenEnd {
		return nil
	}
	return []byte{byte(id)}
}

// Encode makes a token of each byte.
func (v goldenVocab) Encode(text []byte, _, _ bool) (ids []int32) {
	for _, b := range text {
		if int(b) < int(v) {
			ids = append(ids, int32(b))
		}
	}
	return ids
}

// Decode puts bytes together.
func (v goldenVocab) Decode(ids []int32) (out []byte) {
	for _, id := range ids {
		out = append(out, v.Bytes(id)...)
	}
	return out
}

// Special knows the end of a text.
func (v goldenVocab) Special(role int) (int32, bool) {
	return goldenEnd, int(v) > goldenEnd && (role == 1 || role == 2)
}

// EOG tells whether a token ends a text.
func (goldenVocab) EOG(id int32) bool { return id == goldenEnd }

// Control tells whether a token is for the model alone.
func (goldenVocab) Control(id int32) bool { return id == goldenEnd }

// goldenSequences are auxiliary sequences in which all tokens are equally likely.
type goldenSequences struct{ vocab, open int }

// Open implements Sequences, as do the methods below.
func (s *goldenSequences) Open([]int32) (int, error) {
	if s.open == abi.MaxAuxiliary {
		return 0, errors.New("there are two already")
	}
	s.open++
	return s.open, nil
}

// Row is zeros.
func (s *goldenSequences) Row(seq int) []float32 {
	if seq < 1 || seq > s.open {
		return nil
	}
	return make([]float32, s.vocab)
}

// Stats are those of the row.
func (s *goldenSequences) Stats(seq int) (Stats, bool) {
	row := s.Row(seq)
	if row == nil {
		return Stats{}, false
	}
	return rowstats.Of(row), true
}
