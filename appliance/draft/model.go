package draft

import (
	"fmt"
	"time"

	"ganglion/gpu/engine"
	"ganglion/plugins/sampling"
)

// Source is a model as it is used to guess; appliance.Model satisfies it.
type Source interface {
	Info() engine.Info
	Acquire(prompt []int32, salt uint64) (slot, cached int, ok bool)
	Release(slot int)
	Mark(slot int) error
	Truncate(slot, n int) (kept int, err error)
	Run(rows []engine.Row) ([]engine.Head, error)
}

// A smaller model reads what it missed, such as the prompt, in pieces: of firstRead
// rows while its speed is unknown, then of as many as take about as long as a step of
// the larger one.
const (
	firstRead = 32
	leastRead = 8
)

// Model guesses with a smaller model of the same vocabulary, for all sequences in one
// batch. It reads along in slots of its own.
type Model struct {
	source Source
	info   engine.Info
	ends   func(id int32) bool
	now    func() time.Time

	odds   [modelKinds]odds
	price  Price         // of rounds
	perRow time.Duration // of rows that are only read

	rows    []engine.Row
	asking  []*Reader
	scratch sampling.Scratch
}

// NewModel makes a drafter of a smaller model, which the caller goes on owning. ends
// names the tokens that are never guessed: those that end a text, and those that the
// larger model does not have.
func NewModel(s Source, ends func(id int32) bool, now func() time.Time) *Model {
	return &Model{source: s, info: s.Info(), ends: ends, now: now}
}

// Ask is a text to guess for.
type Ask struct {
	Reader *Reader
	Text   []int32
	Limit  int // guesses at most
}

// Guess makes the guesses of each ask's reader, none where they promise too little;
// see Reader.Guesses. step is what steps of the larger model take; so many sequences
// decode in the next one. spent is what guessing took beyond reading along. After an
// error, these readers guess no more.
func (m *Model) Guess(asks []Ask, sequences int, step *Price) (spent time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("draft: panic: %v", p)
		}
		if err != nil {
			for i := range asks {
				asks[i].Reader.fail()
			}
		}
	}()
	for i := range asks {
		if err := m.begin(&asks[i]); err != nil {
			return 0, fmt.Errorf("draft: take guesses back: %w", err)
		}
	}
	if err := m.read(asks, sequences, step); err != nil {
		return 0, fmt.Errorf("draft: read along: %w", err)
	}
	for {
		n := m.form(asks, sequences, step)
		if n == 0 {
			return spent, nil
		}
		from := m.now()
		if err := m.round(); err != nil {
			return spent, fmt.Errorf("draft: guess: %w", err)
		}
		took := m.now().Sub(from)
		m.price.Saw(n, took)
		spent += took
	}
}

// read runs tokens that readers miss, all but the last of each text, and finds who is
// to guess. A reader that rests reads later, many tokens at once.
func (m *Model) read(asks []Ask, sequences int, step *Price) error {
	room := m.readRows(step)
	m.rows = m.rows[:0]
	for i := range asks {
		r, text := asks[i].Reader, asks[i].Text
		missing := len(text) - 1 - r.fed
		if !r.live || (len(text) < r.rest && missing < firstRead) {
			continue
		}
		n := min(missing, room-len(m.rows))
		for _, id := range text[r.fed : r.fed+n] {
			m.rows = append(m.rows, engine.Row{Slot: r.slot, Token: id})
		}
		r.fed += n
		r.want = n == missing && m.ready(r, len(text), sequences, step)
	}
	if len(m.rows) == 0 {
		return nil
	}
	from := m.now()
	if _, err := m.source.Run(m.rows); err != nil {
		return err
	}
	if took := m.now().Sub(from); len(m.rows) >= leastRead && took > 0 {
		per := took / time.Duration(len(m.rows))
		if m.perRow == 0 {
			m.perRow = per
		}
		m.perRow += (per - m.perRow) / 4
	}
	return nil
}

// readRows returns how many rows may be read beside one step.
func (m *Model) readRows(step *Price) int {
	n := firstRead
	if m.perRow > 0 && step.Known() {
		n = max(int(step.Of(1)/m.perRow.Seconds()), leastRead)
	}
	return min(n, m.info.MaxRows)
}

// form lists a row of each reader that is to make its first or another guess and
// returns how many there are.
func (m *Model) form(asks []Ask, sequences int, step *Price) int {
	m.rows, m.asking = m.rows[:0], m.asking[:0]
	for i := range asks {
		r, text := asks[i].Reader, asks[i].Text
		made := len(r.guesses)
		r.want = r.want && made < asks[i].Limit && len(m.rows) < min(m.info.MaxRows, MaxRows) &&
			(made == 0 || m.worth(r, sequences, step))
		if !r.want {
			continue
		}
		id := text[len(text)-1]
		if made > 0 {
			id = r.guesses[made-1].ID
			r.tail = append(r.tail, id)
		} else if err := m.source.Mark(r.slot); err != nil {
			r.fail() // without a mark, what does not come could not be taken back
			r.want = false
			continue
		} else {
			r.base, r.fed = len(text), len(text)
		}
		m.rows = append(m.rows, engine.Row{Slot: r.slot, Token: id, Want: true, Read: Want(r.chain.Needs())})
		m.asking = append(m.asking, r)
	}
	return len(m.rows)
}

// round makes one guess for each reader that was listed.
func (m *Model) round() error {
	heads, err := m.source.Run(m.rows)
	if err != nil {
		return err
	}
	if len(heads) != len(m.asking) {
		return fmt.Errorf("%d heads for %d rows", len(heads), len(m.asking))
	}
	for i, r := range m.asking {
		m.take(r, &heads[i])
	}
	return nil
}
