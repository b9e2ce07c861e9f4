package appliance

import "context"

// Measured is what a prompt takes of the context, told from the headers of its media: nothing
// is decoded and nothing runs.
type Measured struct {
	Tokens  int `json:"tokens"` // of the whole prompt
	Context int `json:"context"`
	Room    int `json:"room"` // for an answer; 0: the prompt does not fit
	// Media are the items in the order of the request.
	Media []MeasuredMedia `json:"media"`
}

// MeasuredMedia is one item, and how the model will see it.
type MeasuredMedia struct {
	MediaNote
	// Pieces are the rows of each piece that is encoded by itself: tiles and overviews of a
	// picture, windows of a sound, frames of a film.
	Pieces []int `json:"pieces"`
}

// Measure tells what the prompt of a request takes. It is refused where Start would refuse its
// prompt or its media, but for one: a prompt that does not fit is measured all the same.
func (s *Service) Measure(ctx context.Context, r *Request) (*Measured, error) {
	sch, err := s.serving()
	if err != nil {
		return nil, err
	}
	prompt, media, fault := sch.tokenize(ctx, r)
	if fault == nil {
		fault = sch.readable(r, media)
	}
	if fault != nil {
		return nil, fault
	}
	m := &Measured{Tokens: len(prompt), Context: sch.info.Context, Media: []MeasuredMedia{}}
	m.Room = max(m.Context-m.Tokens, 0)
	if media == nil {
		return m, nil
	}
	for i, note := range media.notes(sch.vocab) {
		m.Media = append(m.Media, MeasuredMedia{MediaNote: note, Pieces: media.attachments[i].layout.rows()})
	}
	return m, nil
}

// readable refuses a picture that is read at once and does not fit into a batch.
func (s *scheduler) readable(r *Request, media *spread) *Error {
	if media != nil && media.widest() > s.info.MaxRows {
		return Errorf(CodeMediaTooLarge, string(r.Media[0].Kind), "a picture takes %d tokens that are read at once, at most %d are", media.widest(), s.info.MaxRows)
	}
	return nil
}

// rows are the rows of the encoded pieces.
func (l Layout) rows() []int {
	rows := []int{}
	for i := range l {
		if l[i].Text == "" {
			rows = append(rows, l[i].Tokens)
		}
	}
	return rows
}
