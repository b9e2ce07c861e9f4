package web

import (
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
	"ganglion/web/api"
)

const (
	defaultRecords = 50
	maxRecords     = 500
	excerptRunes   = 200 // characters of prompt and text in a list
)

var outcomes = []appliance.Outcome{
	"", appliance.OutcomeOpen, appliance.OutcomeStop, appliance.OutcomeLength,
	appliance.OutcomeFilter, appliance.OutcomeCancelled, appliance.OutcomeError, appliance.OutcomeInterrupted,
}

// listLog answers GET /v1/log, newest first.
func (s *Server) listLog(w *response, r *http.Request, _ httprouter.Params) error {
	q, err := queryOf(r, "limit", "before", "q", "outcome")
	if err != nil {
		return err
	}
	query := appliance.RecordQuery{
		Before: q.Get("before"), Outcome: appliance.Outcome(q.Get("outcome")), Text: q.Get("q"),
	}
	if query.Limit, err = count(q, "limit", defaultRecords, maxRecords); err != nil {
		return err
	}
	if !slices.Contains(outcomes, query.Outcome) {
		return appliance.Errorf(appliance.CodeInvalid, "outcome", "outcome must be one of %v", outcomes[1:])
	}
	if !utf8.ValidString(query.Text) || !utf8.ValidString(query.Before) {
		return appliance.Errorf(appliance.CodeInvalidUTF8, "q", "the query is not UTF-8")
	}
	out := api.RecordList{Records: []api.RecordSummary{}}
	if s.cfg.Log != nil {
		records, next, err := s.cfg.Log.List(r.Context(), query)
		if err != nil {
			return err
		}
		for i := range records {
			out.Records = append(out.Records, summary(&records[i]))
		}
		if next != "" {
			out.Next = &next
		}
	}
	w.json(http.StatusOK, encode(out))
	return nil
}

// getLog answers GET /v1/log/{id} with all that is kept of a request.
func (s *Server) getLog(w *response, r *http.Request, p httprouter.Params) error {
	var rec *appliance.Record
	if s.cfg.Log != nil {
		var err error
		if rec, err = s.cfg.Log.Get(r.Context(), p.ByName("id")); err != nil {
			return err
		}
	}
	if rec == nil {
		return appliance.Errorf(appliance.CodeNotFound, "", "there is no such record")
	}
	out := api.Record{
		RecordSummary: summary(rec), Route: rec.Route, Client: rec.Client, Params: rec.Params,
		ModelHash: rec.ModelHash, Device: rec.Device, Moved: rec.Moved, Kernels: rec.Kernels, SampleMS: rec.SampleMS,
		ErrorCode: string(rec.ErrorCode), ErrorMessage: rec.ErrorMessage,
		Tokens: detailsOf(rec.Tokens).Tokens, Request: string(rec.Body),
	}
	out.Prompt, out.Text = rec.Prompt, rec.Text
	if out.Params == nil {
		out.Params = []appliance.Param{}
	}
	if out.Media = rec.Media; out.Media == nil {
		out.Media = []appliance.MediaNote{}
	}
	if out.Plugins = rec.Plugins; out.Plugins == nil {
		out.Plugins = []appliance.PluginReport{}
	}
	out.PluginMeta = pluginMeta(rec.PluginMeta)
	if !rec.EndedAt.IsZero() {
		out.EndedAt = &rec.EndedAt
	}
	w.json(http.StatusOK, encode(out))
	return nil
}

// getLogMedia answers GET /v1/log/{id}/media/{place} with a file that a request brought. It
// goes out as bytes of no kind, so that no browser takes it for a page of this server.
func (s *Server) getLogMedia(w *response, r *http.Request, p httprouter.Params) error {
	var file []byte
	if place, err := strconv.Atoi(p.ByName("place")); err == nil && s.cfg.Log != nil {
		if file, err = s.cfg.Log.MediaFile(r.Context(), p.ByName("id"), place); err != nil {
			return err
		}
	}
	if file == nil {
		return appliance.Errorf(appliance.CodeNotFound, "", "the log has no such file")
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("Content-Length", strconv.Itoa(len(file)))
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(file)
	return err
}

func summary(r *appliance.Record) api.RecordSummary {
	return api.RecordSummary{
		ID: r.ID, CreatedAt: r.CreatedAt, Model: r.Model, Outcome: string(r.Outcome),
		Prompt: excerpt(r.Prompt), Text: excerpt(r.Text),
		PromptTokens: r.PromptTokens, CompletionTokens: r.CompletionTokens, CachedTokens: r.CachedTokens,
		DraftedTokens: r.DraftedTokens, AcceptedTokens: r.AcceptedTokens,
		QueueMS: r.QueueMS, PrefillMS: r.PrefillMS, DecodeMS: r.DecodeMS, FirstTokenMS: r.FirstTokenMS,
		Seed: r.Seed, Stream: r.Stream, Backend: r.Backend, Numerics: r.Numerics,
	}
}

// excerpt is the beginning of a text.
func excerpt(s string) string {
	n := 0
	for i := range s {
		if n == excerptRunes {
			return s[:i]
		}
		n++
	}
	return s
}
