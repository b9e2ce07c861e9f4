package encoder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// Config says what to load and how to run it.
type Config struct {
	Path         string // encoder file
	Offset, Size int64  // the file inside another one; Size 0 = all of Path
	Backend      ops.Backend
	Numerics     ops.Numerics
	Threads      int // default 1
	// MaxTokens bounds the tokens of one picture where a family can choose, and with them
	// the memory of the tower; default the family's own.
	MaxTokens int
	Progress  func(done, total int64)
	// Recover, when not nil, is asked for the backend to go on with when one has failed, as
	// engine.Config's is; nil from it: there is none.
	Recover func(failure error, failures int) (ops.Backend, error)
}

// Info describes a loaded encoder.
type Info struct {
	Name, Path, Hash string
	FileBytes        int64
	Picture, Sound   string // families of the towers (projector types), "" for none
	Width            int    // of the rows: what the text model's embeddings must be wide
	Slices           int    // further slices of a row for Qwen3-VL's first layers; Width counts them in
	Backend, Device  string // where they run now
}

// seer is a family of towers for pictures.
type seer interface {
	maxRows() int
	plan(g *graph) (*ops.Plan, error)
	// layout is what a picture of a size becomes.
	layout(s Size, o PictureOptions) (Layout, error)
	// prepare gives the pictures that the tower runs on, one for each piece of the layout.
	prepare(m pixel.Image, o PictureOptions) ([]pixel.Image, error)
	// job is the run on a prepared picture and, where two frames are one piece, on the next.
	job(a, b pixel.Image) (*job, Piece)
}

// pairing is a seer for which two frames of a film are one piece.
type pairing interface{ pairs() }

// hearer is a family of towers for sound.
type hearer interface {
	maxRows() int
	plan(g *graph) (*ops.Plan, error)
	layout(samples int) (Layout, error)
	jobs(ctx context.Context, samples []float32) ([]*job, error)
}

// Encoder is a loaded encoder file. Encode* run one after another; the other methods may
// be called from any goroutine at any time before Close.
type Encoder struct {
	file   *gguf.File
	config Config
	info   Info // but for its place
	plans  [2]*ops.Plan
	see    seer
	hear   hearer
	place  atomic.Pointer[[2]string] // backend and device

	mu       sync.Mutex // guards what follows
	picture  *tower
	sound    *tower
	failures int   // of backends
	lost     error // nothing takes the towers any more
	closed   bool
}

// ErrUnsupported is wrapped where the file has no tower for what is asked.
var ErrUnsupported = errors.New("encoder: the encoder file has no tower for it")

// Open loads an encoder file. Everything that can be refused is refused before weights
// are read; on error nothing stays open.
func Open(ctx context.Context, c Config) (*Encoder, error) {
	open := gguf.Open
	if c.Size > 0 {
		open = func(path string) (*gguf.File, error) { return gguf.OpenAt(path, c.Offset, c.Size) }
	}
	f, err := open(c.Path)
	if err != nil {
		return nil, err
	}
	e := &Encoder{file: f, config: c}
	if err := e.load(ctx, c); err != nil {
		e.Close()
		return nil, fmt.Errorf("encoder: %s: %w", filepath.Base(c.Path), err)
	}
	return e, nil
}

func (e *Encoder) load(ctx context.Context, c Config) error {
	see, hear, err := projectors(e.file)
	if err != nil {
		return err
	}
	e.info = Info{Name: strings.TrimSuffix(filepath.Base(c.Path), ".gguf"), Path: c.Path, Hash: e.file.Hash(), FileBytes: e.file.Size(),
		Picture: see, Sound: hear}
	var plans [2]*ops.Plan
	if see != "" {
		if plans[0], err = e.planPicture(see, c); err != nil {
			return err
		}
	}
	if hear != "" {
		if plans[1], err = e.planSound(hear); err != nil {
			return err
		}
	}
	if plans[0] != nil && plans[1] != nil && plans[0].Vocab != plans[1].Vocab {
		return fmt.Errorf("pictures become rows of %d, sounds rows of %d", plans[0].Vocab, plans[1].Vocab)
	}
	e.plans = plans
	return e.seat(ctx, c.Backend, plans)
}

func (e *Encoder) planPicture(family string, c Config) (*ops.Plan, error) {
	k := &keys{file: e.file, modality: vision}
	see, err := newSeer(family, k, c.MaxTokens)
	if err := errors.Join(k.err, err); err != nil {
		return nil, err
	}
	e.see = see
	g, err := e.graph(k, family)
	if err != nil {
		return nil, err
	}
	p, err := see.plan(g)
	if err != nil {
		return nil, err
	}
	e.info.Width = p.Vocab
	if d, ok := see.(interface{ slices() int }); ok {
		e.info.Slices = d.slices()
	}
	return p, nil
}

func (e *Encoder) planSound(family string) (*ops.Plan, error) {
	k := &keys{file: e.file, modality: audio}
	hear, err := newHearer(family, k)
	if err := errors.Join(k.err, err); err != nil {
		return nil, err
	}
	e.hear = hear
	g, err := e.graph(k, family)
	if err != nil {
		return nil, err
	}
	p, err := hear.plan(g)
	if err != nil {
		return nil, err
	}
	e.info.Width = p.Vocab
	return p, nil
}

// graph begins a tower's plan.
func (e *Encoder) graph(k *keys, family string) (*graph, error) {
	g := &graph{Builder: ops.NewBuilder(family), facts: k.facts(family), file: e.file, prefix: k.tensors, loaded: map[string]*ops.Weight{}}
	if k.err != nil {
		return nil, k.err
	}
	var err error
	g.act, err = activation(e.file)
	return g, err
}

// newSeer lists the families of towers for pictures.
func newSeer(family string, k *keys, maxTokens int) (seer, error) {
	switch family {
	case "gemma3":
		return newGemma3(k), nil
	case "idefics3":
		return newIdefics3(k), nil
	case "qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger":
		return newQwenVL(k, family, maxTokens), nil
	case "gemma4v":
		return newGemma4(k, maxTokens), nil
	case "mlp", "internvl":
		return newCLIP(k, family), nil
	case "pixtral":
		return newPixtral(k, maxTokens), nil
	case "lfm2":
		return newLFM2(k), nil
	}
	return nil, fmt.Errorf("projector type %q for pictures is not supported", family)
}

// newHearer lists the families of towers for sound.
func newHearer(family string, k *keys) (hearer, error) {
	switch family {
	case "ultravox", "qwen2a", "voxtral":
		return newWhisper(k, family), nil
	case "gemma4a":
		return newConformer(k), nil
	}
	return nil, fmt.Errorf("projector type %q for sound is not supported", family)
}

// Info describes the file and where its towers run.
func (e *Encoder) Info() Info {
	i := e.info
	if at := e.place.Load(); at != nil {
		i.Backend, i.Device = at[0], at[1]
	}
	return i
}

// Memory is what the towers hold on their device. It waits for a tower that runs.
func (e *Encoder) Memory() (m ops.Memory) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range []*tower{e.picture, e.sound} {
		if t != nil && !e.closed {
			one := t.rt.Memory()
			m.Weights, m.KV, m.Scratch = m.Weights+one.Weights, m.KV+one.KV, m.Scratch+one.Scratch
		}
	}
	return m
}

// Pair tells whether the encoder's rows fit a text model whose embeddings are so wide
// (for Qwen3-VL all its slices counted).
func (e *Encoder) Pair(width int) error {
	if width != e.info.Width {
		return fmt.Errorf("encoder: %s makes rows of %d, the text model takes rows of %d: they do not belong together", e.info.Name, e.info.Width, width)
	}
	return nil
}

// Picture is what a picture of a size becomes, without looking at it.
func (e *Encoder) Picture(s Size, o PictureOptions) (Layout, error) {
	if e.see == nil {
		return Layout{}, fmt.Errorf("%w: a picture", ErrUnsupported)
	}
	if s.W < 1 || s.H < 1 {
		return Layout{}, fmt.Errorf("encoder: a picture of %d×%d", s.W, s.H)
	}
	return e.see.layout(s, e.narrowed(s, o))
}

// narrowed leaves tiles out where they would take more tokens than there may be.
func (e *Encoder) narrowed(s Size, o PictureOptions) PictureOptions {
	if o.MaxTokens <= 0 || o.Untiled {
		return o
	}
	l, err := e.see.layout(s, o)
	n := l.Tokens(func(string) int { return 0 })
	o.Untiled = err == nil && n > o.MaxTokens
	return o
}

// Sound is what so many samples of sound at 16 kHz become.
func (e *Encoder) Sound(samples int) (Layout, error) {
	if e.hear == nil {
		return Layout{}, fmt.Errorf("%w: sound", ErrUnsupported)
	}
	if samples < 1 {
		return Layout{}, fmt.Errorf("encoder: a sound of %d samples", samples)
	}
	return e.hear.layout(samples)
}

// Film is what the frames of a film become. For families that take frames in pairs, two
// neighbours of one size without a text between them are one piece.
func (e *Encoder) Film(frames []Frame, o PictureOptions) (Layout, error) {
	var all Layout
	for _, pair := range e.paired(frames) {
		l, err := e.Picture(frames[pair[0]].Size, o)
		if err != nil {
			return Layout{}, err
		}
		all.text(frames[pair[0]].Before)
		all.Parts = append(all.Parts, l.Parts...)
	}
	return all, nil
}

// paired lists the frames of each piece: one, or two.
func (e *Encoder) paired(frames []Frame) (list [][]int) {
	_, pairs := e.see.(pairing)
	for i := 0; i < len(frames); i++ {
		if i+1 < len(frames) && pairs && frames[i+1].Before == "" && frames[i+1].Size == frames[i].Size {
			list = append(list, []int{i, i + 1})
			i++
			continue
		}
		list = append(list, []int{i})
	}
	return list
}

// EncodePicture computes the pieces of a picture, in the order of its layout.
func (e *Encoder) EncodePicture(ctx context.Context, m pixel.Image, o PictureOptions) ([]Piece, error) {
	return e.EncodeFilm(ctx, []Frame{{Size: Size{m.W, m.H}}}, []pixel.Image{m}, o)
}

// EncodeFilm computes the pieces of a film's frames, in the order of its layout.
func (e *Encoder) EncodeFilm(ctx context.Context, frames []Frame, pictures []pixel.Image, o PictureOptions) ([]Piece, error) {
	if e.see == nil {
		return nil, fmt.Errorf("%w: a picture", ErrUnsupported)
	}
	if len(frames) != len(pictures) {
		return nil, fmt.Errorf("encoder: %d frames, %d pictures", len(frames), len(pictures))
	}
	var all []Piece
	for _, pair := range e.paired(frames) {
		var cells [2][]pixel.Image
		for i, at := range []int{pair[0], pair[len(pair)-1]} {
			m := pictures[at]
			if err := m.Check(); err != nil || m.W != frames[at].W || m.H != frames[at].H {
				return nil, fmt.Errorf("encoder: frame %d of %d×%d is a picture of %d×%d: %w", at, frames[at].W, frames[at].H, m.W, m.H, err)
			}
			if i == 1 && len(pair) == 1 {
				cells[1] = cells[0]
				break
			}
			prepared, err := e.see.prepare(m, e.narrowed(frames[at].Size, o))
			if err != nil {
				return nil, err
			}
			cells[i] = prepared
		}
		for i := range cells[0] {
			p, err := e.encode(ctx, cells[0][i], cells[1][i])
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// encode runs the tower of pictures on a prepared picture.
func (e *Encoder) encode(ctx context.Context, a, b pixel.Image) (Piece, error) {
	j, p := e.see.job(a, b)
	rows, err := e.run(ctx, &e.picture, j)
	if err != nil {
		return Piece{}, err
	}
	p.Rows = j.finish(rows)
	p.N = len(p.Rows) / e.info.Width
	return p, nil
}

// EncodeSound computes the pieces of a sound, in the order of its layout.
func (e *Encoder) EncodeSound(ctx context.Context, samples []float32) ([]Piece, error) {
	if e.hear == nil {
		return nil, fmt.Errorf("%w: sound", ErrUnsupported)
	}
	jobs, err := e.hear.jobs(ctx, samples)
	if err != nil {
		return nil, err
	}
	var all []Piece
	for _, j := range jobs {
		rows, err := e.run(ctx, &e.sound, j)
		if err != nil {
			return nil, err
		}
		all = append(all, Piece{Rows: rows, N: j.outs})
	}
	return all, nil
}

// run runs a job on one of the towers, on another backend where one has failed. A file that was cut in the meantime is an error.
func (e *Encoder) run(ctx context.Context, t **tower, j *job) (rows []float32, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("encoder: %w", ops.ErrClosed)
	}
	if e.lost != nil {
		return nil, e.lost
	}
	if err := e.file.Check(); err != nil {
		return nil, err
	}
	for {
		err := e.file.Guard(func() (err error) {
			rows, err = (*t).run(ctx, j)
			return err
		})
		if !e.recoverable(err) {
			return slices.Clip(rows), err
		}
		if err := e.move(ctx, err); err != nil {
			return nil, err
		}
	}
}

// Close frees everything; it may be called twice.
func (e *Encoder) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	return errors.Join(e.picture.close(), e.sound.close(), e.file.Close())
}
