package host

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

// goldenTime is how long the tests of a file may take: each call is bounded by its fuel,
// and this bounds their number.
const goldenTime = 2 * time.Second

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
	} `json:"want"`
}

// golden runs the tests that a file carries.
func (p *Plugin) golden(m *wasm.Module) error {
	text, ok := m.Custom(abi.SectionTests)
	if !ok {
		return nil
	}
	end := time.Now().Add(goldenTime)
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n > maxGoldenTests {
			return fmt.Errorf("golden tests: more than %d", maxGoldenTests)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := p.goldenLine(line, end); err != nil {
			return fmt.Errorf("golden test in line %d: %w", n, err)
		}
	}
	return nil
}

func (p *Plugin) goldenLine(line []byte, end time.Time) error {
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
	i, err := p.Open(Open{
		Config: config, Prompt: len(t.Prompt), Model: Model{Name: "golden", Vocab: t.Vocab, Context: 1 << 17},
		Request: Request{Temperature: 1, TopP: 1, MaxTokens: generated, Seed: t.Seed},
	})
	if err != nil {
		return fmt.Errorf("%.64q: %w", t.Name, err)
	}
	if i == nil {
		return fmt.Errorf("%.64q: the plugin is not interested", t.Name)
	}
	defer func() { _ = i.Close() }()
	for n := range t.Steps {
		if err := i.goldenStep(&t, &t.Steps[n]); err != nil {
			return fmt.Errorf("%.64q: step %d: %w", t.Name, n, err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("the tests take more than %v", goldenTime)
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
	case len(s.IDs) != len(s.Logits) || len(s.IDs) > l.CandCap:
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
	for k, id := range s.IDs {
		i.put(l.CandIDs+4*k, id)
		i.putFloat(l.CandLogits+4*k, s.Logits[k])
	}
	i.put(abi.OffCandN, uint32(len(s.IDs)))
	i.goldenStats(s.Logits)
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

// goldenStats writes the statistics of a vocabulary whose other tokens are all out.
func (i *Instance) goldenStats(logits []float32) {
	var sum, squares, mass, weighted float64
	top := math.Inf(-1)
	for _, v := range logits {
		top = max(top, float64(v))
		sum += float64(v)
	}
	n := float64(len(logits))
	for _, v := range logits {
		w := math.Exp(float64(v) - top)
		mass += w
		weighted += w * (float64(v) - top)
		squares += (float64(v) - sum/n) * (float64(v) - sum/n)
	}
	if n == 0 {
		top, n, mass = 0, 1, 1
	}
	for off, v := range map[int]float64{
		abi.OffMax: top, abi.OffMean: sum / n, abi.OffStd: math.Sqrt(squares / n), abi.OffLogSumExp: top + math.Log(mass),
		abi.OffEntropy: math.Log(mass) - weighted/mass, abi.OffCandMass: 1,
	} {
		i.putFloat(off, float32(v))
	}
	i.put(abi.OffNFinite, uint32(len(logits)))
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
