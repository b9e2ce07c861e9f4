package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"ganglion/appliance"
	"ganglion/web/api"
)

// piece is what a choice has to say next.
type piece struct {
	index  int
	chunk  appliance.Chunk
	result *appliance.Result // with the last chunk
	err    error             // instead of a chunk
}

// stream sends the pieces of all choices as server-sent events, each as it comes.
// The status line is written with the first event, so that a failure before it is
// still a JSON error.
//
// The last data chunk carries usage. With stream_options.include_usage that is a
// chunk of its own with no choices, as clients of the OpenAI API expect; without
// it, the chunk with the last finish_reason.
func (a *answer) stream(ctx context.Context, w *response) error {
	ctx, cancel := context.WithCancel(ctx)
	var pumps sync.WaitGroup
	defer pumps.Wait()
	defer cancel()
	pieces := make(chan piece)
	for i, c := range a.running {
		pumps.Go(func() { pump(ctx, i, c, pieces) })
	}

	e := &events{w: w}
	quiet := time.NewTimer(a.s.cfg.KeepAlive)
	defer quiet.Stop()
	results := make([]*appliance.Result, len(a.running))
	for left := len(a.running); left > 0; {
		var err error
		select {
		case <-ctx.Done():
			return nil // the client has left: there is nobody to tell
		case <-quiet.C:
			err = e.comment()
		case p := <-pieces:
			if p.err != nil {
				return a.failed(e, p.err)
			}
			if p.result != nil {
				results[p.index] = p.result
				left--
			}
			err = e.data(encode(a.chunk(p, results, left == 0)))
		}
		if err != nil {
			return nil // the connection is gone
		}
		quiet.Reset(a.s.cfg.KeepAlive)
	}
	if a.req.IncludeUsage {
		last := a.envelope([]api.Choice{})
		last.Usage = a.usage(results)
		_ = e.data(encode(last)) // a client that left here has its whole answer
	}
	tellPlugins(w, pluginSummary(results))
	_ = e.done()
	return nil
}

// pump brings the pieces of one choice into the common channel. The last chunk
// waits for the end that follows it at once, so that the result is known with it.
func pump(ctx context.Context, index int, c Completion, pieces chan<- piece) {
	send := func(p piece) bool {
		p.index = index
		select {
		case pieces <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		chunk, err := c.Next(ctx)
		if err == nil && chunk.Finish != "" {
			if _, err = c.Next(ctx); err == nil {
				err = errors.New("web: a completion went on after its last chunk")
			}
			if err == io.EOF {
				send(piece{chunk: chunk, result: c.Result()})
				return
			}
		}
		if err != nil {
			if err == io.EOF {
				err = errors.New("web: a completion ended without a finish reason")
			}
			send(piece{err: err})
			return
		}
		if !send(piece{chunk: chunk}) {
			return
		}
	}
}

// chunk is a piece on the wire. Last tells that no other choice follows.
func (a *answer) chunk(p piece, results []*appliance.Result, last bool) api.Completion {
	choice := a.choice(p.index, p.chunk.Text, p.chunk.Tokens, p.chunk.Finish)
	if p.result == nil {
		return a.envelope([]api.Choice{choice})
	}
	if a.details && len(results) > 1 {
		choice.Ganglion = a.ganglion(p.result)
	}
	out := a.envelope([]api.Choice{choice})
	if last && !a.req.IncludeUsage {
		out.Usage = a.usage(results)
	}
	if last && a.details {
		out.Ganglion = a.ganglion(results[0])
	}
	return out
}

// failed ends a stream with an error: as JSON with its status if nothing was sent
// yet, else as an event, which client libraries raise as an exception.
func (a *answer) failed(e *events, err error) error {
	tellPlugins(e.w, pluginsOf(err))
	err = a.renamed(err)
	if e.w.status == 0 {
		return err
	}
	if e.data(errorBody(a.s.shown(err, e.w.id))) == nil {
		_ = e.done()
	}
	return nil
}

// events writes server-sent events. Each one is flushed, so that a token is seen
// when it is there.
type events struct{ w *response }

func (e *events) data(json []byte) error {
	b := make([]byte, 0, len("data: \n\n")+len(json))
	b = append(append(append(b, "data: "...), json...), "\n\n"...)
	return e.write(b)
}

// comment keeps the connection of a waiting client alive. It is a write of its own
// and not the word ping, which some readers take for the end.
func (e *events) comment() error { return e.write([]byte(": keep-alive\n\n")) }

func (e *events) done() error { return e.write([]byte("data: [DONE]\n\n")) }

func (e *events) write(b []byte) error {
	if e.w.status == 0 {
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // nginx would hold events back
		e.w.WriteHeader(http.StatusOK)
	}
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.w.control.Flush()
}
