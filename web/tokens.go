package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
	"ganglion/gpu/tokenizer"
	"ganglion/web/api"
)

const (
	defaultMatches = 100
	maxMatches     = 1000
)

func (s *Server) vocabulary() (appliance.Vocabulary, error) {
	if v, ok := s.cfg.Vocabulary(); ok {
		return v, nil
	}
	if s.cfg.Status().State == appliance.StateLoading {
		return nil, appliance.Errorf(appliance.CodeLoading, "", "the model is being loaded; try again in a moment")
	}
	return nil, appliance.Errorf(appliance.CodeNoModel, "", "no model is loaded")
}

// tokenize answers POST /v1/tokenize: the ids that a prompt of this text has, with
// special and bos true unless the request says otherwise.
func (s *Server) tokenize(w *response, r *http.Request, _ httprouter.Params) error {
	data, release, err := s.readBody(w, r, smallMax)
	defer release()
	if err != nil {
		return err
	}
	req, err := api.DecodeTokenize(data)
	if err != nil {
		return err
	}
	v, err := s.vocabulary()
	if err != nil {
		return err
	}
	on := func(b *bool) bool { return b == nil || *b }
	ids := v.Encode(req.Text, tokenizer.EncodeOptions{AddSpecial: on(req.BOS), ParseSpecial: on(req.Special)})
	out := api.TokenList{Tokens: make([]api.TokenItem, len(ids))}
	for i, id := range ids {
		out.Tokens[i] = api.TokenItem{ID: id, Text: pieceText(v, id)}
	}
	w.json(http.StatusOK, encode(out))
	return nil
}

// pieceText is a token as it reads in a text. One that is no text by itself, such as
// a part of a character, goes by its name in the model's file.
func pieceText(v appliance.Vocabulary, id int32) string {
	piece := v.AppendPiece(nil, id, true)
	if utf8.Valid(piece) {
		return string(piece)
	}
	return v.Text(id)
}

// shownPieces renders control tokens by their names: a text that is looked at
// should show what is in it.
type shownPieces struct{ appliance.Vocabulary }

func (p shownPieces) AppendPiece(dst []byte, id int32, _ bool) []byte {
	return p.Vocabulary.AppendPiece(dst, id, true)
}

// detokenize answers POST /v1/detokenize.
func (s *Server) detokenize(w *response, r *http.Request, _ httprouter.Params) error {
	data, release, err := s.readBody(w, r, smallMax)
	defer release()
	if err != nil {
		return err
	}
	ids, err := api.DecodeDetokenize(data)
	if err != nil {
		return err
	}
	v, err := s.vocabulary()
	if err != nil {
		return err
	}
	var text []byte
	d := tokenizer.NewDecoder(shownPieces{v})
	for i, id := range ids {
		if int(id) >= v.VocabSize() {
			param := "tokens[" + strconv.Itoa(i) + "]"
			return appliance.Errorf(appliance.CodeInvalid, param, "%s: the model's token ids are 0 to %d", param, v.VocabSize()-1)
		}
		text = append(text, d.Push(id)...)
	}
	text = append(text, d.Flush()...)
	w.json(http.StatusOK, encode(api.Text{Text: string(text)}))
	return nil
}

// searchTokens answers GET /v1/tokens: the tokens whose text contains a text in
// any case, the shortest first. One word has several tokens, with and without a
// space before it, and a bias is for one of them.
func (s *Server) searchTokens(w *response, r *http.Request, _ httprouter.Params) error {
	q, err := queryOf(r, "contains", "limit")
	if err != nil {
		return err
	}
	want := strings.ToLower(q.Get("contains"))
	if want == "" || !utf8.ValidString(want) {
		return appliance.Errorf(appliance.CodeMissing, "contains", "contains must be a text in UTF-8")
	}
	limit, err := count(q, "limit", defaultMatches, maxMatches)
	if err != nil {
		return err
	}
	v, err := s.vocabulary()
	if err != nil {
		return err
	}
	found := []api.TokenItem{}
	for id := range int32(v.VocabSize()) {
		if text := pieceText(v, id); strings.Contains(strings.ToLower(text), want) {
			found = append(found, api.TokenItem{ID: id, Text: text})
		}
	}
	slices.SortStableFunc(found, func(a, b api.TokenItem) int { return len(a.Text) - len(b.Text) })
	more := len(found) > limit
	w.json(http.StatusOK, encode(api.TokenList{Tokens: found[:min(len(found), limit)], More: &more}))
	return nil
}
