package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ganglion/appliance"
)

const (
	batchOps  = 256
	firstWait = 50 * time.Millisecond // before a failed write is tried again; doubles up to
	lastWait  = time.Second
	sweepTime = time.Hour // between searches for rows that are too old
)

// run is the writer: the one goroutine that writes records. What fails for a reason
// that may pass stays and is tried again; meanwhile the queue fills.
func (l *Log) run() {
	defer close(l.done)
	ticker := time.NewTicker(sweepTime)
	defer ticker.Stop()
	var (
		pending  []*op
		wait     time.Duration
		sweeping = true // at start
		deadline <-chan time.Time
		closing  = l.queue.closing
	)
	for {
		select {
		case <-closing:
			closing = nil
			deadline = time.After(l.cfg.closeWait)
		default:
		}
		if len(pending) == 0 {
			pending = l.queue.take(batchOps, l.size.batchBytes)
		}
		var retry <-chan time.Time
		switch {
		case len(pending) > 0:
			var err error
			pending, err = l.writeOps(pending)
			l.noteWrite(err)
			l.queue.settled(len(pending))
			if err == nil {
				wait = 0
				continue
			}
			wait = min(max(2*wait, firstWait), lastWait)
			if closing == nil {
				wait = firstWait
			}
			retry = time.After(wait)
		case closing == nil:
			l.state.set(StateClosed, nil)
			return
		case sweeping:
			more, err := l.sweepStep()
			switch {
			case isDamaged(err):
				err = l.replaceDamaged(err)
			case errors.Is(err, errNotOpen):
				err = l.reopen()
			}
			l.noteWrite(err)
			sweeping = more || isBusy(err)
			continue
		}
		wake := l.queue.wake
		if retry != nil {
			wake = nil // only time helps
		}
		select {
		case <-wake:
		case <-retry:
		case <-ticker.C:
			sweeping = true
		case <-closing: // the next round sees it
		case <-deadline:
			l.state.drop(int64(len(pending) + l.queue.length()))
			l.cfg.Logger.Error("request log: records were lost at the end", "records", len(pending)+l.queue.length())
			l.state.set(StateClosed, nil)
			l.queue.settled(1) // nobody need wait for what was lost
			return
		}
	}
}

// noteWrite keeps the state and logs its changes.
func (l *Log) noteWrite(err error) {
	name := stateOf(err)
	if !l.state.set(name, err) {
		return
	}
	if err != nil {
		l.cfg.Logger.Warn("request log cannot be written; answers go on", "path", l.cfg.Path, "state", name, "error", err)
	} else {
		l.cfg.Logger.Info("request log is written again", "path", l.cfg.Path)
	}
}

// writeOps writes operations and returns those that are left for later. When a batch
// fails it is halved, so that one record that cannot be written does not hold up the
// others.
func (l *Log) writeOps(ops []*op) (left []*op, err error) {
	err = l.writeBatch(ops)
	switch {
	case err == nil:
		for _, o := range ops {
			o.release()
		}
		return nil, nil
	case isBusy(err):
		return ops, err
	case isDamaged(err):
		if again := l.replaceDamaged(err); again != nil {
			return ops, again
		}
		return l.writeOps(ops) // into the new file
	case errors.Is(err, errNotOpen):
		if again := l.reopen(); again != nil {
			return ops, again
		}
		return l.writeOps(ops)
	case len(ops) > 1:
		a, errA := l.writeOps(ops[:len(ops)/2])
		b, errB := l.writeOps(ops[len(ops)/2:])
		if errA == nil {
			errA = errB
		}
		return append(a, b...), errA
	case errors.Is(err, errTooLarge) && ops[0].kept == keptAll:
		ops[0].leaveOut()
		return l.writeOps(ops)
	case isPassing(err) && !(errors.Is(err, errTooLarge) && sizeOf(&ops[0].record) > l.size.maxRecord):
		return ops, err
	default:
		// The record itself cannot be written; trying again would not help.
		l.state.drop(1)
		l.state.set(StateOK, err)
		l.cfg.Logger.Error("request log: a record was not written", "request_id", ops[0].record.ID, "error", err)
		ops[0].release()
		return nil, nil
	}
}

// release lets Begin return. It is called once, by the writer.
func (o *op) release() {
	if o.written != nil {
		close(o.written)
	}
}

// errTooLarge marks a write for which the log has no room even when it is empty but for
// the rows of answers under way.
var errTooLarge = errors.New("larger than the room of the log")

// writeBatch writes operations in one transaction.
func (l *Log) writeBatch(ops []*op) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.write == nil {
		return errNotOpen
	}
	ctx := context.Background()
	need := int64(0)
	for _, o := range ops {
		need += o.bytes
	}
	if err := l.makeRoom(ctx, need); err != nil {
		return err
	}
	rows, err := l.insertAll(ctx, ops)
	if isFull(err) && l.size.maxBytes > 0 {
		// The estimate was too low. If it was our own limit and not the disk, there
		// is room after this.
		need = l.size.maxBytes / 8
		for _, o := range ops {
			need += 2 * sizeOf(&o.record)
		}
		if err := l.makeRoom(ctx, need); err != nil {
			return err
		}
		if rows, err = l.insertAll(ctx, ops); isFull(err) {
			if used, errUsed := usedBytes(ctx, l.write); errUsed == nil && used+need > l.size.maxBytes {
				err = fmt.Errorf("%w: %w", errTooLarge, err)
			}
		}
	}
	if err != nil {
		return err
	}
	l.state.addRows(rows)
	return l.boundWAL(ctx)
}

// insertAll writes operations in one transaction and returns the number of new rows.
func (l *Log) insertAll(ctx context.Context, ops []*op) (rows int64, err error) {
	tx, err := l.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if err := writeIdentity(ctx, tx, l.application); err != nil {
		return 0, err
	}
	for _, o := range ops {
		n, err := o.write(ctx, tx)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, tx.Commit()
}

// write does one operation and returns the number of new rows.
func (o *op) write(ctx context.Context, tx *sql.Tx) (int64, error) {
	if !o.end {
		return o.insert(ctx, tx)
	}
	found, err := o.update(ctx, tx)
	if err != nil || found > 0 {
		return 0, err
	}
	n, err := o.insert(ctx, tx)
	if err != nil {
		return 0, err
	}
	_, err = o.update(ctx, tx)
	return n, err
}

const insertRequest = `
INSERT INTO requests (id, created_at, outcome, route, client, stream, seed,
	model, model_hash, backend, device, numerics, kernels, body_bytes, kept, prompt)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING`

const insertData = `INSERT INTO request_data (seq, params, body, media) VALUES (?, ?, ?, ?)`

// insert makes the row of a record unless it is there.
func (o *op) insert(ctx context.Context, tx *sql.Tx) (int64, error) {
	r := &o.record
	res, err := tx.ExecContext(ctx, insertRequest, r.ID, toMicros(r.CreatedAt), appliance.OutcomeOpen, r.Route, r.Client,
		r.Stream, r.Seed, r.Model, r.ModelHash, r.Backend, r.Device, r.Numerics, r.Kernels, o.bodyBytes, o.kept, r.Prompt)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return 0, err
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return 0, err
	}
	params, err := json.Marshal(r.Params)
	if err != nil {
		return 0, err
	}
	media, err := formatMedia(r)
	if err != nil {
		return 0, err
	}
	if _, err = tx.ExecContext(ctx, insertData, seq, string(params), r.Body, media); err != nil {
		return 0, err
	}
	return n, insertFiles(ctx, tx, seq, r)
}

const updateRequest = `
UPDATE requests SET ended_at = ?, outcome = ?, error_code = ?, error_message = ?, backend = ?, device = ?, moved = ?,
	prompt_tokens = ?, cached_tokens = ?, completion_tokens = ?, drafted_tokens = ?, accepted_tokens = ?,
	queue_ms = ?, prefill_ms = ?, decode_ms = ?, first_token_ms = ?, sample_ms = ?, text = ?,
	kept = CASE WHEN kept = 'all' THEN ? ELSE kept END
WHERE id = ?`

const updateData = `UPDATE request_data SET tokens = ?, plugins = ?, plugin_meta = ? WHERE seq = (SELECT seq FROM requests WHERE id = ?)`

// update closes the row of a record and returns the number of rows it found.
func (o *op) update(ctx context.Context, tx *sql.Tx) (int64, error) {
	r := &o.record
	var ended any
	if !r.EndedAt.IsZero() {
		ended = toMicros(r.EndedAt)
	}
	res, err := tx.ExecContext(ctx, updateRequest, ended, r.Outcome, r.ErrorCode, r.ErrorMessage, r.Backend, r.Device, r.Moved,
		r.PromptTokens, r.CachedTokens, r.CompletionTokens, r.DraftedTokens, r.AcceptedTokens,
		r.QueueMS, r.PrefillMS, r.DecodeMS, r.FirstTokenMS, r.SampleMS, r.Text, o.kept, r.ID)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return 0, err
	}
	tokens := appendTokens(r.Tokens, r.Text)
	plugins, meta, err := formatPlugins(r)
	if err == nil && (tokens != nil || plugins != "") {
		_, err = tx.ExecContext(ctx, updateData, tokens, plugins, meta, r.ID)
	}
	return n, err
}

func toMicros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
