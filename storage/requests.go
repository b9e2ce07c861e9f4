package storage

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ganglion/appliance"
)

// errNotOpen says that there are no connections: after Close, and while the file
// cannot be opened.
var errNotOpen = errors.New("storage: the log is not open")

// notOpen is errNotOpen with the reason.
func (l *Log) notOpen() error {
	s := l.state.snapshot()
	if s.State == StateClosed {
		return fmt.Errorf("%w: it was closed", errNotOpen)
	}
	return fmt.Errorf("%w: %s: %s", errNotOpen, s.State, s.LastError)
}

const (
	maxLimit     = 500
	excerptChars = 400 // characters of prompt and text in a list
)

// summaryColumns are what List reads; %s are prompt and text, whole or cut.
const summaryColumns = `seq, id, created_at, ended_at, outcome, route, client, stream, seed,
	model, model_hash, backend, device, numerics, kernels, error_code, error_message,
	prompt_tokens, cached_tokens, completion_tokens, drafted_tokens, accepted_tokens,
	queue_ms, prefill_ms, decode_ms, first_token_ms, sample_ms, moved, %s, %s`

// List returns records, newest first, and the id to continue before; next is empty at
// the end. Prompt and Text are cut to their first 400 characters, and Body, Params
// and Tokens are left out: Get has them. Text is searched without regard to the case
// of ASCII letters. As for Get and MediaFile, the writes before a call are in what it returns,
// unless the log is slow or cannot be written.
func (l *Log) List(ctx context.Context, q appliance.RecordQuery) (records []appliance.Record, next string, err error) {
	if q.Limit < 1 || q.Limit > maxLimit {
		return nil, "", fmt.Errorf("storage: list: limit %d is not in 1 to %d", q.Limit, maxLimit)
	}
	query, args := listQuery(q)
	l.catchUp(ctx)
	l.pools.RLock()
	defer l.pools.RUnlock()
	if l.read == nil {
		return nil, "", l.notOpen()
	}
	rows, err := l.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, "", fmt.Errorf("storage: list: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r appliance.Record
		if _, err := scanSummary(rows, &r); err != nil {
			return nil, "", fmt.Errorf("storage: list: %w", err)
		}
		records = append(records, r)
	}
	if err := rows.Err(); err != nil {
		return nil, "", fmt.Errorf("storage: list: %w", err)
	}
	if len(records) > q.Limit {
		records = records[:q.Limit]
		next = records[q.Limit-1].ID
	}
	return records, next, nil
}

// listQuery builds the query of List. It asks for one row more, to know whether the
// list goes on.
func listQuery(q appliance.RecordQuery) (string, []any) {
	where, args := []string{"1"}, []any(nil)
	add := func(cond string, values ...any) {
		where = append(where, cond)
		args = append(args, values...)
	}
	if q.Before != "" {
		add("seq < (SELECT seq FROM requests WHERE id = ?)", q.Before)
	}
	if q.Outcome != "" {
		add("outcome = ?", q.Outcome)
	}
	if !q.Since.IsZero() {
		add("created_at >= ?", toMicros(q.Since))
	}
	if q.Text != "" {
		// instr, not LIKE: nothing in the text is a wildcard, and any length is fine.
		add("(instr(lower(prompt), lower(?)) OR instr(lower(text), lower(?)))", q.Text, q.Text)
	}
	cut := func(column string) string { return fmt.Sprintf("substr(%s, 1, %d)", column, excerptChars) }
	return "SELECT " + fmt.Sprintf(summaryColumns, cut("prompt"), cut("text")) +
		" FROM requests WHERE " + strings.Join(where, " AND ") +
		" ORDER BY seq DESC LIMIT ?", append(args, q.Limit+1)
}

type scanner interface{ Scan(dest ...any) error }

// scanSummary reads summaryColumns and whatever follows them.
func scanSummary(row scanner, r *appliance.Record, more ...any) (seq int64, err error) {
	var created int64
	var ended sql.NullInt64
	dest := []any{&seq, &r.ID, &created, &ended, &r.Outcome, &r.Route, &r.Client, &r.Stream, &r.Seed,
		&r.Model, &r.ModelHash, &r.Backend, &r.Device, &r.Numerics, &r.Kernels, &r.ErrorCode, &r.ErrorMessage,
		&r.PromptTokens, &r.CachedTokens, &r.CompletionTokens, &r.DraftedTokens, &r.AcceptedTokens,
		&r.QueueMS, &r.PrefillMS, &r.DecodeMS, &r.FirstTokenMS, &r.SampleMS, &r.Moved, &r.Prompt, &r.Text}
	if err := row.Scan(append(dest, more...)...); err != nil {
		return 0, err
	}
	r.CreatedAt = fromMicros(created)
	if ended.Valid {
		r.EndedAt = fromMicros(ended.Int64)
	}
	return seq, nil
}

// Get returns a whole record, nil when there is none with that id. Numbers among the
// values of Params are json.Number, so that no digit is lost.
func (l *Log) Get(ctx context.Context, id string) (*appliance.Record, error) {
	l.catchUp(ctx)
	l.pools.RLock()
	defer l.pools.RUnlock()
	if l.read == nil {
		return nil, l.notOpen()
	}
	query := "SELECT " + fmt.Sprintf(summaryColumns, "prompt", "text") +
		", params, body, tokens, plugins, plugin_meta, media FROM requests JOIN request_data USING (seq) WHERE id = ?"
	var (
		r            appliance.Record
		params       string
		body, tokens []byte

		plugins, meta, media string
	)
	_, err := scanSummary(l.read.QueryRowContext(ctx, query, id), &r, &params, &body, &tokens, &plugins, &meta, &media)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("storage: record %q: %w", id, err)
	}
	r.Body = body
	if r.Params, err = parseParams(params); err != nil {
		return nil, fmt.Errorf("storage: record %q: parameters: %w", id, err)
	}
	if media != "" {
		if err := json.Unmarshal([]byte(media), &r.Media); err != nil {
			return nil, fmt.Errorf("storage: record %q: media: %w", id, err)
		}
	}
	if r.Tokens, err = parseTokens(tokens, r.Text); err == nil {
		err = parsePlugins(&r, plugins, meta)
	}
	if err != nil {
		return nil, fmt.Errorf("storage: record %q: %w", id, err)
	}
	return &r, nil
}

func parseParams(text string) (params []appliance.Param, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	err = d.Decode(&params)
	return params, err
}
