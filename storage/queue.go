package storage

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"ganglion/appliance"
)

// maxQueueBytes bounds the memory of records that wait for a slow disk. One record
// may be larger when nothing else waits.
const maxQueueBytes = 64 << 20

// What a row says in its column kept.
const (
	keptAll      = "all"
	keptNoText   = "no text"
	keptTooLarge = "too large"
)

// op is one write that waits: the beginning or the end of a record. A record's writes
// may be done in either order and more than once: the end makes the row where it is
// missing, and the beginning does nothing where it is there.
type op struct {
	record    appliance.Record
	kept      string
	bodyBytes int
	end       bool
	bytes     int64         // of memory, roughly; also of the file
	written   chan struct{} // closed when the row is there or given up; nil for an end
}

// queue holds writes for the writer, in order.
type queue struct {
	mu      sync.Mutex
	ops     []*op
	bytes   int64
	limit   int
	closed  bool
	wake    chan struct{} // holds one signal when something was added
	closing chan struct{} // closed by close

	added, taken uint64        // writes, ever
	done         uint64        // of those taken: all up to here are written or given up
	progress     chan struct{} // closed, and made anew, when done changes
}

func (q *queue) init(limit int) {
	q.limit = limit
	q.wake = make(chan struct{}, 1)
	q.closing = make(chan struct{})
	q.progress = make(chan struct{})
}

// add appends a write unless the queue is full or closed.
func (q *queue) add(o *op) bool {
	q.mu.Lock()
	full := len(q.ops) >= q.limit || (len(q.ops) > 0 && q.bytes+o.bytes > maxQueueBytes)
	if full || q.closed {
		q.mu.Unlock()
		return false
	}
	q.ops = append(q.ops, o)
	q.bytes += o.bytes
	q.added++
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// take removes up to n writes of together no more than the given bytes, but at least
// one.
func (q *queue) take(n int, bytes int64) []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	k, sum := 0, int64(0)
	for k < len(q.ops) && k < n && (k == 0 || sum+q.ops[k].bytes <= bytes) {
		sum += q.ops[k].bytes
		k++
	}
	out := make([]*op, k)
	copy(out, q.ops)
	rest := copy(q.ops, q.ops[k:])
	clear(q.ops[rest:])
	q.ops = q.ops[:rest]
	q.bytes -= sum
	q.taken += uint64(k)
	return out
}

// settled notes that the writer tried what it had taken and how many writes are left of it.
func (q *queue) settled(left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if left == 0 {
		q.done = q.taken
	}
	close(q.progress)
	q.progress = make(chan struct{})
}

// behind tells whether the first n writes are still to be done, and what is closed when
// that may have changed.
func (q *queue) behind(n uint64) (bool, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.done < n, q.progress
}

// total is the number of writes that were ever added.
func (q *queue) total() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.added
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ops)
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.closing)
	}
}

// Begin puts the first part of a record into the log. It returns when the row is
// there, after BeginWait at the latest, and at once while the log cannot be written;
// the row is then written as soon as that is possible. The record is copied; what
// its slices hold must not change.
func (l *Log) Begin(ctx context.Context, r *appliance.Record) {
	o := l.newOp(r, false)
	healthy := l.state.ok()
	if !l.queue.add(o) {
		l.state.late()
		return // the end of the record makes the row, if there is room again by then
	}
	if !healthy {
		l.state.late()
		return
	}
	timer := time.NewTimer(l.cfg.BeginWait)
	defer timer.Stop()
	select {
	case <-o.written:
	case <-timer.C:
		l.state.late()
	case <-ctx.Done():
	}
}

// End closes a record. It does not wait. The record is copied as by Begin.
func (l *Log) End(r *appliance.Record) {
	if !l.queue.add(l.newOp(r, true)) {
		l.state.drop(1)
	}
}

// catchUp waits for the writes that were put in before it, so that who reads the log after
// an answer finds the row closed. It does not wait while the log cannot be written, nor
// longer than Config.readWait.
func (l *Log) catchUp(ctx context.Context) {
	n := l.queue.total()
	var timeout <-chan time.Time
	for {
		behind, progress := l.queue.behind(n)
		if !behind || !l.state.ok() {
			return
		}
		if timeout == nil {
			timer := time.NewTimer(l.cfg.readWait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-progress:
		case <-timeout:
			return
		case <-ctx.Done():
			return
		}
	}
}

// newOp copies a record and leaves out of it what is not to be kept, so that such
// text is not even held in memory here.
func (l *Log) newOp(r *appliance.Record, end bool) *op {
	o := &op{record: *r, kept: keptAll, bodyBytes: len(r.Body), end: end}
	if !end {
		o.written = make(chan struct{})
	}
	rec := &o.record
	l.keepFiles(rec, end)
	if l.cfg.NoText {
		o.kept = keptNoText
		withoutText(rec)
		rec.Params = withoutWords(rec.Params)
		rec.ErrorMessage = ""
		withoutPluginText(rec)
	}
	o.bytes = sizeOf(rec)
	if limit := l.size.maxRecord; limit > 0 && o.bytes > limit+sizeOfFiles(rec) {
		o.leaveOut()
	}
	return o
}

// leaveOut keeps the facts of a record that is too large, and not its text.
func (o *op) leaveOut() {
	if o.kept == keptAll {
		o.kept = keptTooLarge
	}
	withoutText(&o.record)
	withoutPluginText(&o.record)
	o.record.ErrorMessage = ""
	o.record.Params = withoutWords(o.record.Params)
	o.bytes = sizeOf(&o.record)
}

// sizeOf is about what a record takes up.
func sizeOf(r *appliance.Record) int64 {
	n := int64(len(r.Body)+len(r.Prompt)+len(r.Text)+len(r.ErrorMessage)) + 1024
	for i := range r.Tokens {
		t := &r.Tokens[i]
		n += 16 + int64(len(t.Text)) + 16*int64(len(t.Top))
		for _, a := range t.Top {
			n += int64(len(a.Text))
		}
	}
	for i := range r.Params {
		switch r.Params[i].Value.(type) {
		case nil, bool, int, int32, int64, uint64, float32, float64:
		default:
			b, _ := json.Marshal(r.Params[i].Value) // an error is the writer's to tell
			n += int64(len(b))
		}
	}
	n += sizeOfFiles(r) + 256*int64(len(r.Media))
	for i := range r.Plugins {
		n += 512 + int64(len(r.Plugins[i].Error))
		for _, c := range r.Plugins[i].Choices {
			n += 48 + int64(len(c.Text))
		}
	}
	if len(r.PluginMeta) > 0 {
		b, _ := json.Marshal(r.PluginMeta)
		n += int64(len(b))
	}
	return n
}

func sizeOfFiles(r *appliance.Record) (n int64) {
	for _, f := range r.Files {
		n += int64(len(f))
	}
	return n
}

func withoutText(r *appliance.Record) {
	r.Body, r.Prompt, r.Text, r.Tokens, r.Files = nil, "", "", nil, nil
	r.Media = slices.Clone(r.Media) // the record is the caller's
	for i := range r.Media {
		r.Media[i].SHA256, r.Media[i].Kept = "", false // the hash tells a picture that somebody else has
	}
}

// withoutWords keeps the values that are numbers or yes/no; stop strings and the
// like become null.
func withoutWords(params []appliance.Param) []appliance.Param {
	out := make([]appliance.Param, len(params))
	for i, p := range params {
		switch p.Value.(type) {
		case nil, bool, int, int32, int64, uint64, float32, float64, json.Number:
		default:
			p.Value = nil
		}
		out[i] = p
	}
	return out
}
