package appliance

import (
	"context"
	"time"

	"ganglion/gpu/engine"
)

// errCancelled is how a completion ends whose reader left.
var errCancelled = Errorf(CodeCancelled, "", "the request was cancelled")

// newRecord makes the first part of a request's record.
func newRecord(id string, r *Request, info *engine.Info, set *settings, created time.Time) *Record {
	return &Record{
		ID: id, CreatedAt: created, Route: r.Route, Client: r.Client, Stream: r.Stream,
		Body: r.Body, Prompt: r.Prompt, Params: set.params, Seed: set.sampling.Seed,
		Model: info.Name, ModelHash: info.Hash, Backend: info.Backend, Device: info.Device,
		Numerics: info.Numerics, Kernels: info.Kernels,
		Outcome: OutcomeOpen,
	}
}

// begin opens a record. A log that fails, even by a panic, never stops an answer.
func (c *Config) begin(ctx context.Context, r *Record) {
	if c.Recorder == nil {
		return
	}
	if err := guard("open a record", func() error { c.Recorder.Begin(ctx, r); return nil }); err != nil {
		c.Logger.Error("record was not opened", "request_id", r.ID, "error", err)
	}
}

// end closes a record.
func (c *Config) end(r *Record) {
	if c.Recorder == nil {
		return
	}
	if err := guard("close a record", func() error { c.Recorder.End(r); return nil }); err != nil {
		c.Logger.Error("record was not closed", "request_id", r.ID, "error", err)
	}
}

// close ends a sequence: the record first, so that it is closed before the reader
// sees the end, then the completion.
func (s *scheduler) close(q *sequence) {
	if q.plug != nil {
		s.endPlugins(q)
	}
	now := s.cfg.Now()
	var failure *Error
	if q.err != nil {
		failure = s.shown(q)
	}
	var last Chunk
	if err := guard("end a text", func() error { last = q.flow.last(q.reason); return nil }); err != nil && failure == nil {
		q.err = err
		failure = s.shown(q)
	}
	t := q.timings(now)
	usage := Usage{PromptTokens: len(q.prompt), CompletionTokens: len(q.flow.tokens), CachedTokens: q.cached}

	r := q.record
	info := s.model.Info()
	r.Backend, r.Device = info.Backend, info.Device
	if hadSlot := !q.started.IsZero(); hadSlot && info.Moves != q.moves {
		r.Moved = info.Moved
		q.warn = append(q.warn, "a device failed meanwhile: "+info.Moved)
	}
	r.EndedAt = now
	r.Text = string(q.flow.text)
	r.Tokens = q.flow.tokens[:len(q.flow.tokens):len(q.flow.tokens)]
	r.PromptTokens, r.CachedTokens, r.CompletionTokens = usage.PromptTokens, usage.CachedTokens, usage.CompletionTokens
	r.DraftedTokens, r.AcceptedTokens = q.ahead.drafted, q.ahead.came
	r.QueueMS, r.PrefillMS, r.DecodeMS = milliseconds(t.Queue), milliseconds(t.Prefill), milliseconds(t.Decode)
	r.FirstTokenMS, r.SampleMS = milliseconds(t.FirstToken), milliseconds(q.sampled)
	switch {
	case failure == nil:
		r.Outcome = Outcome(q.reason)
	case failure.Code == CodeCancelled:
		r.Outcome = OutcomeCancelled
	default:
		r.Outcome, r.ErrorCode, r.ErrorMessage = OutcomeError, failure.Code, failure.Message
	}
	s.cfg.end(r)

	if failure != nil {
		told := *failure
		told.Reports = r.Plugins
		q.c.finish(Chunk{}, nil, &told)
		return
	}
	q.c.finish(last, &Result{
		ID: r.ID, Created: q.created, Model: s.info.Name, Text: r.Text, Tokens: r.Tokens,
		Finish: q.reason, Usage: usage, DraftedTokens: r.DraftedTokens, AcceptedTokens: r.AcceptedTokens, Timings: t, Params: r.Params, Seed: r.Seed, Backend: r.Backend, Warnings: q.warn, Plugins: r.Plugins, PluginMeta: r.PluginMeta,
	}, nil)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
