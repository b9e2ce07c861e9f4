package appliance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ganglion/appliance/media/film"
	"ganglion/appliance/media/picture"
	"ganglion/gpu/engine"
)

// decoders is how many items are in memory decoded at once. Together they take what one
// picture may take while it is decoded (picture.Limits.Bytes): one that takes more than its
// part has all places to itself.
const decoders = 2

// decoding has a place for each item from the beginning of its decoding until it is encoded,
// of all models: what is decoded does not pile up before a slow encoder. Who takes all places
// gathers them alone, so that no two wait for one another.
var (
	decoding  = make(chan struct{}, decoders)
	gathering = make(chan struct{}, 1)
)

// takePlace waits for a place to decode in, or all of them. done gives them back.
func takePlace(ctx context.Context, all bool) (done func(), err error) {
	wanted, got := 1, 0
	done = func() {
		for ; got > 0; got-- {
			<-decoding
		}
	}
	if all {
		select {
		case gathering <- struct{}{}:
			defer func() { <-gathering }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		wanted = decoders
	}
	for ; got < wanted; got++ {
		select {
		case decoding <- struct{}{}:
		case <-ctx.Done():
			done()
			return nil, ctx.Err()
		}
	}
	return done, nil
}

// heavy tells whether decoding an item takes more memory than is meant for one place.
func (a *attachment) heavy() bool { return a.memory > picture.DefaultLimits().Bytes/decoders }

// eyes is the encoder of a model, and what it has seen. Its methods are safe for concurrent
// use.
type eyes struct {
	encoder Encoder
	info    EncoderInfo
	busy    chan struct{} // holds one signal while the encoder runs
	seen    *embeddings
}

func newEyes(e Encoder, cacheBytes int64) *eyes {
	return &eyes{encoder: e, info: e.Info(), busy: make(chan struct{}, 1), seen: newEmbeddings(cacheBytes)}
}

// hash tells how the encoder computes now, which changes where its device was lost: on another
// one its rows are not the same to the last bit.
func (e *eyes) hash() string { return e.encoder.Info().Hash }

// tokenize returns the tokens of a request's prompt, and where its media stand in it.
func (s *scheduler) tokenize(ctx context.Context, r *Request) ([]int32, *spread, *Error) {
	if len(r.Media) == 0 {
		ids, fault := tokenize(r, s.vocab, s.cfg.PlainSpecial)
		return ids, nil, fault
	}
	if s.eyes == nil {
		m := &r.Media[0]
		return nil, nil, Errorf(CodeModality, string(m.Kind), "the model takes text only; %s cannot be used with it", m.Kind)
	}
	return tokenizeMedia(ctx, r, s.vocab, s.cfg.PlainSpecial, s.eyes.encoder, s.cfg.Film)
}

// encode decodes and encodes what the prompt of a sequence holds, before it is submitted.
// It works in the goroutine of the request, so that the scheduler goes on meanwhile. The
// error is one for the user, or the context's.
func (s *scheduler) encode(ctx context.Context, q *sequence) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-s.quit:
			cancel()
		case <-stop:
		}
	}()
	done := make([]*embedding, len(q.media.attachments))
	for i, a := range q.media.attachments {
		e, err := s.see(ctx, a)
		if err != nil {
			return s.mediaError(ctx, q, a, err)
		}
		done[i] = e
	}
	q.media.settle(q.prompt, done)
	return nil
}

// mediaError words a failure of an item for the user.
func (s *scheduler) mediaError(ctx context.Context, q *sequence, a *attachment, err error) error {
	if ctx.Err() != nil {
		return errCancelled
	}
	if errors.Is(err, errPanic) {
		s.cfg.Logger.Error("media were not decoded", "request_id", q.c.id, "model", s.info.Name, "param", a.media.Param, "error", err)
	}
	if e, ok := err.(*encodeError); ok {
		s.cfg.Logger.Error("media were not encoded", "request_id", q.c.id, "model", s.info.Name, "encoder", s.eyes.info.Name, "param", a.media.Param, "error", e.err)
		return Errorf(CodeInternal, a.media.Param, "internal error")
	}
	return a.fault(err)
}

// encodeError is a failure of the encoder, which is no fault of the file.
type encodeError struct{ err error }

func (e *encodeError) Error() string { return e.err.Error() }

// see returns an item as the encoder sees it, from memory where it has seen it before.
func (s *scheduler) see(ctx context.Context, a *attachment) (*embedding, error) {
	hash := s.eyes.hash()
	file := a.fileName(hash)
	if e := s.eyes.seen.getFile(file); e != nil {
		return e, nil
	}
	turned, endTurn, err := s.filmTurn(ctx, a)
	if err != nil {
		return nil, err
	}
	defer endTurn()
	leave, err := takePlace(ctx, a.heavy())
	if err != nil {
		return nil, err
	}
	defer leave()
	c, e, err := s.look(turned, a, hash)
	endTurn()
	if err != nil || e != nil {
		return e, err
	}
	select {
	case s.eyes.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.eyes.busy }()
	if e := s.eyes.seen.get(c.name(s.eyes.hash())); e != nil { // another request was first
		return e, nil
	}
	var pieces [][]float32
	err = guard("encode media", func() (err error) {
		switch a.media.Kind {
		case Image:
			pieces, err = s.eyes.encoder.EncodePicture(ctx, c.image, a.options)
		case Video:
			pieces, err = s.encodeFilm(ctx, a, &c)
		default:
			pieces, err = s.eyes.encoder.EncodeSound(ctx, c.samples)
		}
		return err
	})
	rows := 0
	if err == nil {
		rows, err = a.checkPieces(pieces, s.eyes.info.Width)
	}
	if err != nil {
		return nil, &encodeError{err}
	}
	if now := s.eyes.hash(); now != hash { // it went on elsewhere with this item
		hash = now
		s.eyes.seen.know(a.fileName(hash), c.name(hash))
	}
	return s.eyes.seen.put(c.name(hash), pieces, rows), nil
}

// encodeFilm encodes the frames, then what sounds.
func (s *scheduler) encodeFilm(ctx context.Context, a *attachment, c *content) ([][]float32, error) {
	pieces, err := s.eyes.encoder.EncodeFilm(ctx, a.film.frames, c.frames, a.options)
	if err != nil || a.film.sound == nil {
		return pieces, err
	}
	track, err := s.eyes.encoder.EncodeSound(ctx, c.samples)
	return append(pieces, track...), err
}

// filmTurn waits for the decoder of films where an item needs it: the first one for the decoder
// itself, others for those before them, and none on its own time. done ends the turn; it may
// be called twice.
func (s *scheduler) filmTurn(ctx context.Context, a *attachment) (turned context.Context, done func(), err error) {
	if !a.foreignDecoder() {
		return ctx, func() {}, nil
	}
	switch err := s.cfg.Film.Prepare(ctx); {
	case err == nil, errors.Is(err, film.ErrNoDecoder):
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	default:
		return nil, nil, &encodeError{err}
	}
	return s.cfg.Film.Turn(ctx)
}

// look decodes an item, unless another request with it was first.
func (s *scheduler) look(ctx context.Context, a *attachment, hash string) (content, *embedding, error) {
	file := a.fileName(hash)
	if e := s.eyes.seen.getFile(file); e != nil {
		return content{}, e, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.MediaTime)
	defer cancel()
	var c content
	err := guard("decode media", func() (err error) {
		c, err = a.decode(ctx, s.cfg.Film)
		return err
	})
	if err != nil {
		return content{}, nil, err
	}
	name := c.name(hash)
	s.eyes.seen.know(file, name)
	return c, s.eyes.seen.get(name), nil
}

// checkPieces holds what the encoder gave against the layout, and counts the rows.
func (a *attachment) checkPieces(pieces [][]float32, width int) (rows int, err error) {
	n := 0
	for _, p := range a.layout {
		if p.Text != "" {
			continue
		}
		if n == len(pieces) || len(pieces[n]) != p.Tokens*width {
			return 0, fmt.Errorf("appliance: encode media: piece %d is not of %d rows of %d", n, p.Tokens, width)
		}
		rows += p.Tokens
		n++
	}
	if n != len(pieces) {
		return 0, fmt.Errorf("appliance: encode media: %d pieces, the layout has %d", len(pieces), n)
	}
	return rows, nil
}

// settle puts what was encoded into its places in a prompt.
func (s *spread) settle(prompt []int32, done []*embedding) {
	next := make([]int32, len(done)) // rows that were placed of each
	for i := range s.spans {
		p := &s.spans[i]
		e := done[p.item]
		p.values = e.pieces[p.index]
		for at := p.from; at < p.end(); at++ {
			prompt[at] = e.first - next[p.item]
			next[p.item]++
		}
	}
}

// forget lets go of the files and of what was known of them, once all is in its place.
func (s *spread) forget() { s.attachments = nil }

// leavePictures takes a slot back to the beginning of a picture in which what is in place
// ends: a model that goes on elsewhere runs a picture whole or not at all.
func (s *scheduler) leavePictures(q *sequence) (err error) {
	for q.media != nil && err == nil {
		p := q.media.at(q.cached)
		if p == nil || !p.piece.Whole || q.cached == p.from {
			return nil
		}
		q.cached, err = s.model.Truncate(q.slot, p.from)
	}
	return err
}

// notes is what the log keeps of the media.
func (s *spread) notes(v Vocabulary) []MediaNote {
	out := make([]MediaNote, len(s.attachments))
	for i, a := range s.attachments {
		out[i] = a.note(s.tokens(i, v))
	}
	return out
}

// files are the files of the media, as they came.
func (s *spread) files() [][]byte {
	out := make([][]byte, len(s.attachments))
	for i, a := range s.attachments {
		out[i] = a.media.Data
	}
	return out
}

// rowOf is the row of a token at a position of a slot, for a model that runs its sequences
// again. Only the scheduler's own goroutine calls it, inside a call of the model.
func (s *scheduler) rowOf(slot, pos int, token int32) engine.Row {
	for _, q := range s.running {
		if q.slot == slot && q.media != nil {
			return q.row(pos, token)
		}
	}
	return engine.Row{Slot: slot, Token: token}
}

// fit is how many of take rows can run in a batch with room for so many: a piece that is
// read at once is run whole or not at all, even where it is more than the pace allows.
func (q *sequence) fit(take, room int) int {
	if q.media == nil {
		return take
	}
	own := max(len(q.tokens)-q.fed, 0)
	others := max(q.missing()-own, 0) // of auxiliary sequences, which come first
	if take <= others && take > 0 {
		return take
	}
	if n := q.media.cut(q.fed, max(take-others, 0)); n > 0 {
		return others + n
	}
	if n := others + q.media.unit(q.fed); n <= room {
		return n
	}
	return min(others, room)
}

// fit brings the shares of prompts to where pictures may be cut, in a batch with room for so
// many rows. A picture that did not fit into the batch before is the first to take.
func (s *scheduler) fit(room int) {
	if !slices.ContainsFunc(s.running, func(q *sequence) bool { return q.media != nil }) {
		return
	}
	first := s.squeezed()
	if first != nil {
		first.squeezed = false
		first.take = first.fit(first.take, room)
		room -= first.take
	}
	for _, q := range s.running {
		if q == first || q.busy() || !q.prefilling() {
			continue
		}
		q.take = q.fit(min(q.take, room), room)
		room -= q.take
		q.squeezed = q.take == 0 && q.media.unit(q.fed) > 0
	}
}

// squeezed is the sequence whose picture did not fit into the last batch, nil for none.
func (s *scheduler) squeezed() *sequence {
	for _, q := range s.running {
		if q.squeezed && !q.busy() && q.prefilling() {
			return q
		}
	}
	return nil
}
