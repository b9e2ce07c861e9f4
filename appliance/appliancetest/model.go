package appliancetest

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"ganglion/appliance"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/plugins/rowstats"
)

// Options describe a double. Zero values take the defaults named.
type Options struct {
	Name    string // default "scripted" or "hashed"
	Context int    // positions per sequence, default 4096
	Slots   int    // default 4
	MaxRows int    // default 512

	// Adapters are the names of adapters that the model carries.
	Adapters []string

	// Recurrent makes the model one whose slots cannot go back to every length: only
	// to the latest mark, or to nothing.
	Recurrent bool

	Vocabulary Vocabulary      // AddsBOS, NoBOS, Banned
	Sampling   engine.Defaults // values of the model file

	// Gate, when not nil, is received from before each Run: the test lets the
	// model go on one step at a time, or freely once it is closed.
	Gate <-chan struct{}
	// Before, when not nil, is called at the start of each Run with its rows and
	// may return the error with which the Run fails, or panic. The rows are valid
	// until it returns.
	Before func(run int, rows []engine.Row) error
}

// Scripted is a model double; NewScripted and NewHashed make one. As a Model it
// follows the rules of appliance.Model, and its other methods are safe for
// concurrent use.
type Scripted struct {
	o     Options
	vocab Vocabulary
	info  engine.Info
	// logits fills a row for the token that follows seq; prompt is how many tokens
	// of seq were the prompt.
	logits func(seq []int32, prompt int, row []float32)

	slots []slot
	faces map[int32]int32 // what the rows of media hold, by their ids
	row   []float32
	heads []engine.Head
	seen  []bool // slots in the batch

	runs, closed, busy atomic.Int64
	mu                 sync.Mutex
	prompts            [][]int32
}

var _ appliance.Model = (*Scripted)(nil)

// slot is one sequence in the model's memory.
type slot struct {
	tokens []int32
	salt   uint64
	lora   []engine.AdapterScale
	prompt int
	mark   int // tokens at the latest mark, 0 for none
	busy   bool
	use    int // when it was taken last, for choosing which to overwrite
}

func newModel(name string, o Options) *Scripted {
	if o.Name == "" {
		o.Name = name
	}
	if o.Context == 0 {
		o.Context = 4096
	}
	if o.Slots == 0 {
		o.Slots = 4
	}
	if o.MaxRows == 0 {
		o.MaxRows = 512
	}
	return &Scripted{o: o, vocab: o.Vocabulary, slots: make([]slot, o.Slots), seen: make([]bool, o.Slots)}
}

// finish describes the model once its vocabulary is complete.
func (m *Scripted) finish() *Scripted {
	n := m.vocab.VocabSize()
	m.info = engine.Info{
		Name: m.o.Name, Path: "/models/" + m.o.Name + ".gguf", Architecture: "double", Hash: "test:" + m.o.Name,
		Quantization: "F32", Parameters: 1000, FileBytes: 4000,
		Vocab: n, Context: m.o.Context, TrainContext: m.o.Context, Slots: m.o.Slots, MaxRows: m.o.MaxRows,
		Backend: "double", Device: "memory", Numerics: "exact", KV: "f32", Kernels: "1", Threads: 1,
		Sampling: m.o.Sampling,
	}
	for id, name := range m.o.Adapters {
		m.info.Adapters = append(m.info.Adapters, engine.AdapterInfo{ID: id, Name: name, Path: "/models/" + name + ".gguf", Hash: "test:" + name, Bytes: 400, Weights: 2})
	}
	m.row = make([]float32, n)
	return m
}

// Info implements appliance.Model.
func (m *Scripted) Info() engine.Info { return m.info }

// Vocabulary implements appliance.Model.
func (m *Scripted) Vocabulary() appliance.Vocabulary { return &m.vocab }

// Acquire implements appliance.Model: the free slot with the longest common prefix of
// the same salt, the least recently used among equals.
func (m *Scripted) Acquire(prompt []int32, salt uint64) (at, cached int, ok bool) {
	at, cached = -1, -1
	for i := range m.slots {
		s := &m.slots[i]
		if s.busy {
			continue
		}
		n := 0
		if s.salt == salt {
			n = common(s.tokens, prompt)
		}
		if n > cached || (n == cached && s.use < m.slots[at].use) {
			at, cached = i, n
		}
	}
	if at < 0 {
		return 0, 0, false
	}
	cached = min(cached, len(prompt)-1)
	latest := 0
	for i := range m.slots {
		latest = max(latest, m.slots[i].use)
	}
	s := &m.slots[at]
	s.tokens = append(s.tokens[:0], prompt[:cached]...)
	s.mark, s.lora = 0, nil
	s.salt, s.prompt, s.busy, s.use = salt, len(prompt), true, latest+1
	m.busy.Add(1)
	m.mu.Lock()
	m.prompts = append(m.prompts, slices.Clone(prompt))
	m.mu.Unlock()
	return at, cached, true
}

func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// AdapterToken is the token whose logit an adapter raises by its strength.
func AdapterToken(id int) int32 { return 'A' + int32(id) }

// SetAdapters implements appliance.Model: an adapter raises the logit of its token.
func (m *Scripted) SetAdapters(at int, adapters []engine.AdapterScale) error {
	s := &m.slots[at]
	switch {
	case !s.busy:
		return fmt.Errorf("appliancetest: adapters: slot %d was not acquired", at)
	case s.salt != engine.Salt(adapters):
		return fmt.Errorf("appliancetest: adapters: slot %d was acquired with the salt of others", at)
	}
	for _, a := range adapters {
		if a.ID < 0 || a.ID >= len(m.o.Adapters) {
			return fmt.Errorf("appliancetest: adapters: no adapter %d", a.ID)
		}
	}
	s.lora = slices.Clone(adapters)
	return nil
}

// Release implements appliance.Model.
func (m *Scripted) Release(at int) {
	if !m.slots[at].busy {
		panic(fmt.Sprintf("appliancetest: slot %d is released twice", at))
	}
	m.slots[at].busy = false
	m.busy.Add(-1)
}

// Mark implements appliance.Model.
func (m *Scripted) Mark(at int) error {
	s := &m.slots[at]
	if !s.busy {
		return fmt.Errorf("appliancetest: mark: slot %d was not acquired", at)
	}
	s.mark = len(s.tokens)
	return nil
}

// Truncate implements appliance.Model.
func (m *Scripted) Truncate(at, n int) (kept int, err error) {
	s := &m.slots[at]
	if !s.busy || n < 0 || n > len(s.tokens) {
		return 0, fmt.Errorf("appliancetest: truncate slot %d to %d of %d tokens, in use: %v", at, n, len(s.tokens), s.busy)
	}
	if m.o.Recurrent && n < len(s.tokens) {
		if s.mark > n {
			s.mark = 0
		}
		n = s.mark
	}
	s.tokens = s.tokens[:n]
	return n, nil
}

// Run implements appliance.Model. It fails where the rows break the rules.
func (m *Scripted) Run(rows []engine.Row) ([]engine.Head, error) {
	run := int(m.runs.Add(1))
	if m.o.Gate != nil {
		<-m.o.Gate
	}
	if m.o.Before != nil {
		if err := m.o.Before(run, rows); err != nil {
			return nil, err
		}
	}
	if len(rows) == 0 || len(rows) > m.o.MaxRows {
		return nil, fmt.Errorf("appliancetest: %d rows, at most %d", len(rows), m.o.MaxRows)
	}
	m.heads = m.heads[:0]
	clear(m.seen)
	for i, r := range rows {
		if i > 0 && r.Slot == rows[i-1].Slot {
			// stands with the row before it
		} else if m.seen[r.Slot] {
			return nil, fmt.Errorf("appliancetest: row %d: slot %d stands apart", i, r.Slot)
		}
		m.seen[r.Slot] = true
		s := &m.slots[r.Slot]
		switch {
		case !s.busy:
			return nil, fmt.Errorf("appliancetest: row %d: slot %d was not acquired", i, r.Slot)
		case len(s.tokens) == m.o.Context:
			return nil, fmt.Errorf("appliancetest: row %d: slot %d is full", i, r.Slot)
		case int(r.Token) >= len(m.row), r.Token < 0 && len(r.Embed) != EncoderWidth, r.Token >= 0 && r.Embed != nil:
			return nil, fmt.Errorf("appliancetest: row %d: token %d with a row of %d", i, r.Token, len(r.Embed))
		case r.Until > len(s.tokens)+ahead(rows[i:]):
			return nil, fmt.Errorf("appliancetest: row %d: it sees up to position %d, the batch ends at %d", i, r.Until, len(s.tokens)+ahead(rows[i:]))
		}
		if err := m.face(r); err != nil {
			return nil, err
		}
		s.tokens = append(s.tokens, r.Token)
		if r.Want {
			m.logits(m.faced(s.tokens), s.prompt, m.row)
			for _, a := range s.lora {
				m.row[AdapterToken(a.ID)] += a.Scale
			}
			m.heads = append(m.heads, head(m.row, r.Read))
		}
	}
	return m.heads, nil
}

// ahead is how many rows of the first row's slot stand at the beginning of rows.
func ahead(rows []engine.Row) (n int) {
	for n < len(rows) && rows[n].Slot == rows[0].Slot {
		n++
	}
	return n
}

// face notes what a row of media holds. Rows of one id must be equal.
func (m *Scripted) face(r engine.Row) error {
	if r.Token >= 0 {
		return nil
	}
	h := uint64(0)
	for _, x := range r.Embed {
		h = mix(h ^ uint64(math.Float32bits(x)))
	}
	f := int32(h>>40) | 1<<28 // no token
	if old, ok := m.faces[r.Token]; ok && old != f {
		return fmt.Errorf("appliancetest: rows with id %d differ", r.Token)
	}
	if m.faces == nil {
		m.faces = make(map[int32]int32)
	}
	m.faces[r.Token] = f
	return nil
}

// faced is a sequence with what its rows of media hold in the place of their ids.
func (m *Scripted) faced(seq []int32) []int32 {
	if len(m.faces) == 0 {
		return seq
	}
	out := slices.Clone(seq)
	for i, id := range out {
		if id < 0 {
			out[i] = m.faces[id]
		}
	}
	return out
}

// head reads back what is wanted of a row.
func head(row []float32, w ops.Want) engine.Head {
	h := engine.Head{Max: float32(math.Inf(-1))}
	for id, l := range row {
		if l > h.Max {
			h.Best, h.Max = int32(id), l
		}
	}
	sum := 0.0
	for _, l := range row {
		sum += math.Exp(float64(l) - float64(h.Max))
	}
	h.LogSumExp = float32(float64(h.Max) + math.Log(sum))
	if w.Stats {
		h.Stats = rowstats.Of(row)
	}
	switch w.Kind {
	case ops.WantTop:
		ids := make([]int32, len(row))
		for i := range ids {
			ids[i] = int32(i)
		}
		slices.SortStableFunc(ids, func(a, b int32) int {
			switch {
			case row[a] > row[b]:
				return -1
			case row[a] < row[b]:
				return 1
			}
			return 0
		})
		h.IDs = ids[:w.K]
		for _, id := range h.IDs {
			h.Logits = append(h.Logits, row[id])
		}
	case ops.WantRow:
		h.Row = slices.Clone(row)
	}
	return h
}

// Close implements appliance.Model.
func (m *Scripted) Close() error {
	m.closed.Add(1)
	return nil
}

// Runs returns how many batches were run.
func (m *Scripted) Runs() int { return int(m.runs.Load()) }

// Busy returns how many slots were acquired and not released.
func (m *Scripted) Busy() int { return int(m.busy.Load()) }

// Closed tells whether Close was called.
func (m *Scripted) Closed() bool { return m.closed.Load() > 0 }

// Prompts returns the token ids of every prompt that got a slot, in order.
func (m *Scripted) Prompts() [][]int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.prompts)
}
