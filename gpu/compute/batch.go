package compute

import (
	"math"

	"ganglion/gpu/ops"
)

// Words of the head of a batch buffer. Kernels read the number of rows that really run
// from wordRows or wordOuts and leave early beyond it.
const (
	wordRows   = 0 // rows of the batch
	wordOuts   = 1 // output rows of the batch
	wordSeqs   = 2 // sequences of the batch
	wordChunks = 3 // chunks of ops.KVChunk positions that the longest sequence has
	headWords  = 16
)

// seqWords is the size of a sequence's entry: slot, first row, rows, first position
// (0: its recurrent state starts at zero).
const seqWords = 4

// rowSections are the offsets, in words of the batch buffer, of what is known of the
// rows of one row set. Output rows have their own copies, so that a kernel needs no
// second look-up.
type rowSections struct {
	count   uint32 // the word that holds how many rows run: wordRows or wordOuts
	tokens  uint32 // [rows] token, −1 for none
	pos     uint32 // [rows] position in the sequence
	seq     uint32 // [rows] number of the sequence in the batch: for pages and seqs
	slot    uint32 // [rows] slot that holds the sequence
	factors uint32 // [PosScale operations][rows] float: see factorsOf
	scales  uint32 // [adapters][rows] float
	turns   uint32 // [ops.Axes][rows] position on each axis; only where a table has axes
	sees    uint32 // [sights][first, last][rows] position that an attention sees
}

// batchLayout says where the sections of a batch buffer lie: everything that changes
// from run to run, for one shape and one bucket of KV length. All are words; signed
// numbers by two's complement, floats by their bits.
type batchLayout struct {
	plan   *ops.Plan
	paging *ops.Paging
	shape  ops.Shape
	seqCap int // sequences that a batch of the shape can have
	pageN  int // entries of one sequence's page table in one group

	row, out rowSections
	outs     uint32   // [outs] row of each output
	wants    uint32   // [outs] K of the best tokens that the device chooses, 0 for none
	stats    uint32   // [outs] 1 where statistics are wanted
	seqs     uint32   // [seqCap][seqWords]
	pages    uint32   // [groups][seqCap][pageN] page number
	lists    []uint32 // by Plan.Lists: [rows of its row set][Per] numbers of units
	active   uint32   // [adapters] 1 when any row has a strength
	words    int

	posScales []*ops.PosScale
	sights    []*ops.Attention // the first of each kind: see sightOf
	axes      int              // ops.Axes, or 0 where no table has axes
	buf       []byte
}

// newBatchLayout places the sections for a program that can look back over chunks
// chunks of positions.
func newBatchLayout(p *ops.Plan, g *ops.Paging, s ops.Shape, chunks int) *batchLayout {
	l := &batchLayout{plan: p, paging: g, shape: s, seqCap: min(s.Rows, g.Slots)}
	l.pageN = min(g.PerSlot, chunks*ops.KVChunk/ops.PageSize)
	for _, op := range p.Ops {
		switch o := op.(type) {
		case *ops.PosScale:
			l.posScales = append(l.posScales, o)
		case *ops.Attention:
			if l.sightOf(o) == len(l.sights) {
				l.sights = append(l.sights, o)
			}
		}
	}
	for _, t := range p.Tables {
		if t.Axes != nil {
			l.axes = ops.Axes
		}
	}
	l.words = headWords
	take := func(n int) uint32 {
		at := l.words
		l.words += n
		return uint32(at)
	}
	set := func(count uint32, n int) rowSections {
		return rowSections{count: count, tokens: take(n), pos: take(n), seq: take(n), slot: take(n),
			factors: take(n * len(l.posScales)), scales: take(n * p.Adapters),
			turns: take(n * l.axes), sees: take(n * 2 * len(l.sights))}
	}
	l.row = set(wordRows, s.Rows)
	l.out = set(wordOuts, s.Outs)
	l.outs, l.wants, l.stats = take(s.Outs), take(s.Outs), take(s.Outs)
	l.seqs = take(l.seqCap * seqWords)
	l.active = take(p.Adapters)
	for _, list := range p.Lists {
		n := s.Rows
		if list.Rows == ops.PerOut {
			n = s.Outs
		}
		l.lists = append(l.lists, take(n*list.Per))
	}
	l.pages = take(len(g.Groups) * l.seqCap * l.pageN)
	l.buf = make([]byte, 4*l.words)
	return l
}

// pagesOf is the word at which the page tables of a group begin: [seqCap][pageN].
func (l *batchLayout) pagesOf(group int) uint32 { return l.pages + uint32(group*l.seqCap*l.pageN) }

// sightOf is the number of the kind of an attention: of all that see the same positions.
func (l *batchLayout) sightOf(o *ops.Attention) int {
	for i, k := range l.sights {
		if k.Window == o.Window && k.Chunked == o.Chunked && k.Span == o.Span {
			return i
		}
	}
	return len(l.sights)
}

// rowsOf is the number of rows that the sections of a row set have room for.
func (l *batchLayout) rowsOf(s rowSections) int {
	if s.count == wordOuts {
		return l.shape.Outs
	}
	return l.shape.Rows
}

// seenOf is the words at which the first and the last positions begin that an attention
// sees.
func (l *batchLayout) seenOf(o *ops.Attention, s rowSections) (lo, hi uint32) {
	n := uint32(l.rowsOf(s))
	lo = s.sees + 2*n*uint32(l.sightOf(o))
	return lo, lo + n
}

// turnsOf is the word at which the positions begin by which a table's pairs turn, and the
// words from axis to axis, 0 for a table without axes.
func (l *batchLayout) turnsOf(t *ops.RoPETable, s rowSections) (at, step uint32) {
	if t.Axes == nil {
		return s.pos, 0
	}
	return s.turns, uint32(l.rowsOf(s))
}

// factorsOf is the word at which the factors of a PosScale for the rows of a set begin.
func (l *batchLayout) factorsOf(o *ops.PosScale, s rowSections) uint32 {
	for i, k := range l.posScales {
		if k == o {
			return s.factors + uint32(i*l.rowsOf(s))
		}
	}
	return s.factors
}

func (l *batchLayout) put(word uint32, v int32) {
	b := l.buf[4*word : 4*word+4]
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func (l *batchLayout) putFloat(word uint32, v float32) { l.put(word, int32(math.Float32bits(v))) }

// fill writes a batch that fits the shape and gives the bytes of the buffer, which are
// valid until the next call.
func (l *batchLayout) fill(b *ops.Batch) []byte {
	l.put(wordRows, int32(len(b.Tokens)))
	l.put(wordOuts, int32(len(b.Outs)))
	for a := range l.plan.Adapters {
		l.put(l.active+uint32(a), 0)
	}
	for i, list := range b.Lists {
		for k, unit := range list {
			l.put(l.lists[i]+uint32(k), unit)
		}
	}
	l.fillSeqs(b)
	for r := range b.Tokens {
		l.fillRow(b, l.row, l.shape.Rows, r, r)
	}
	for i, r := range b.Outs {
		l.fillRow(b, l.out, l.shape.Outs, i, int(r))
		l.put(l.out.seq+uint32(i), l.get(l.row.seq+uint32(r)))
		l.put(l.outs+uint32(i), r)
		k := 0
		if onDevice(b.Want[i]) {
			k = b.Want[i].K
		}
		l.put(l.wants+uint32(i), int32(k))
		l.put(l.stats+uint32(i), int32(flag(b.Want[i].Stats)))
	}
	return l.buf
}

func (l *batchLayout) get(word uint32) int32 {
	b := l.buf[4*word : 4*word+4]
	return int32(b[0]) | int32(b[1])<<8 | int32(b[2])<<16 | int32(b[3])<<24
}

// fillRow writes what is known of row r of the batch as row i of a set of n rows.
func (l *batchLayout) fillRow(b *ops.Batch, s rowSections, n, i, r int) {
	at := uint32(i)
	l.put(s.tokens+at, b.Tokens[r])
	l.put(s.pos+at, b.Pos[r])
	l.put(s.slot+at, b.Slot[r])
	for k, o := range l.posScales {
		l.putFloat(s.factors+uint32(k*n+i), o.At(int(b.Pos[r])))
	}
	for a := range l.axes {
		pos := b.Pos[r]
		if b.Rotary != nil {
			pos = b.Rotary[r*ops.Axes+a]
		}
		l.put(s.turns+uint32(a*n+i), pos)
	}
	for k, o := range l.sights {
		lo, end := o.Sees(int(b.Pos[r]), b.SpanOf(r, o.Span))
		l.put(s.sees+uint32(2*k*n+i), int32(lo))
		l.put(s.sees+uint32((2*k+1)*n+i), int32(end-1))
	}
	for a := range l.plan.Adapters {
		f := float32(0)
		if b.Scales != nil {
			f = b.Scales[r*l.plan.Adapters+a]
		}
		l.putFloat(s.scales+uint32(a*n+i), f)
		if f != 0 {
			l.put(l.active+uint32(a), 1)
		}
	}
}

// fillSeqs writes the sequences of the batch, their page tables and each row's number
// of its sequence.
func (l *batchLayout) fillSeqs(b *ops.Batch) {
	seqs, last := 0, int32(0)
	for from := 0; from < len(b.Slot); seqs++ {
		to := from
		for to < len(b.Slot) && b.Slot[to] == b.Slot[from] {
			l.put(l.row.seq+uint32(to), int32(seqs))
			to++
		}
		last = max(last, b.Pos[to-1])
		at := l.seqs + uint32(seqs*seqWords)
		l.put(at, b.Slot[from])
		l.put(at+1, int32(from))
		l.put(at+2, int32(to-from))
		l.put(at+3, b.Pos[from])
		for g := range l.paging.Groups {
			table := l.paging.Table(b.Pages, g, int(b.Slot[from]))[:l.pageN]
			at := l.pagesOf(g) + uint32(seqs*l.pageN)
			for i, page := range table {
				l.put(at+uint32(i), page)
			}
		}
		from = to
	}
	l.put(wordSeqs, int32(seqs))
	l.put(wordChunks, last/ops.KVChunk+1)
}
