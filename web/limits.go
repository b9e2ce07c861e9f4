package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/semaphore"

	"ganglion/appliance"
)

const (
	// bodyRate is the slowest a client may send its body on average, in bytes a
	// second, once BodyTimeout has passed.
	bodyRate = 1 << 10
	// drainTime is how long the rest of a refused body is read.
	drainTime = time.Second
	// smallBody is a body that is held without a reservation.
	smallBody = 64 << 10
	// firstBuffer is the memory taken for a body before any of it has come: a
	// length that is only announced must not take any.
	firstBuffer = 512 << 10
	// smallMax bounds the bodies of routes that take a few fields.
	smallMax = 8 << 20
)

// body reads a request's body under a limit that counts only time in which the
// client is to send: each read gets the time left, and the deadline is taken off
// as soon as the body is over, since the connection is then watched for the
// client's leaving by the same means.
type body struct {
	r     io.Reader
	w     *response
	idle  time.Duration
	start time.Time
	n     int64
}

func (s *Server) body(w *response, r *http.Request) *body {
	return &body{r: r.Body, w: w, idle: s.cfg.BodyTimeout, start: time.Now()}
}

func (b *body) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.idle)
	if slowest := b.start.Add(b.idle + time.Duration(b.n)*time.Second/bodyRate); slowest.Before(deadline) {
		deadline = slowest
	}
	_ = b.w.control.SetReadDeadline(deadline) // absent only in tests without a connection
	n, err := b.r.Read(p)
	b.n += int64(n)
	if err == io.EOF {
		b.w.bodyRead = true
		_ = b.w.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// drain bounds what net/http does with a body that was not read to its end: it
// reads on for a while before it closes or reuses the connection, and would wait
// for ever for a client that sends no more.
func (w *response) drain(r *http.Request) {
	if r.ContentLength != 0 && !w.bodyRead {
		_ = w.control.SetReadDeadline(time.Now().Add(drainTime))
	}
}

// readBody reads a whole body of at most max bytes. The caller calls release when
// the body is no longer held.
func (s *Server) readBody(w *response, r *http.Request, max int64) (data []byte, release func(), err error) {
	release = func() {}
	if err := checkEncoding(r); err != nil {
		return nil, release, err
	}
	if r.ContentLength > max {
		return nil, release, tooLarge(w, max)
	}
	size := r.ContentLength
	if size < 0 {
		size = max // chunked: as much may come
	}
	var held *reservation
	if size > smallBody {
		if held, err = s.reserve(r.Context(), size); err != nil {
			return nil, release, err
		}
		release = held.release
	}
	b := s.body(w, r)
	data = make([]byte, 0, min(size, firstBuffer)+1)
	for {
		if len(data) == cap(data) {
			grown := make([]byte, len(data), min(int64(2*cap(data)), size+1))
			copy(grown, data)
			data = grown
		}
		n, err := b.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > max {
			return nil, release, tooLarge(w, max)
		}
		switch {
		case err == io.EOF:
			held.keep(int64(len(data)))
			return data, release, nil
		case err != nil:
			return nil, release, bodyError(w, err)
		}
	}
}

// reservation is memory for one body, taken before its length is known.
type reservation struct {
	bodies *semaphore.Weighted
	n      int64
}

// reserve waits until a body of n bytes fits into the memory for bodies.
func (s *Server) reserve(ctx context.Context, n int64) (*reservation, error) {
	n = min(n, s.cfg.MaxBodies)
	ctx, cancel := context.WithTimeout(ctx, s.cfg.BodyTimeout)
	defer cancel()
	if err := s.bodies.Acquire(ctx, n); err != nil {
		return nil, appliance.Errorf(appliance.CodeQueueFull, "", "too many large requests are in work")
	}
	return &reservation{s.bodies, n}, nil
}

// holdFiles waits until the files that a request names fit into the memory for bodies, as the
// bytes that it brings itself do. The caller calls release when they are no longer held.
func (s *Server) holdFiles(ctx context.Context, items []appliance.Media, sent int) (release func(), err error) {
	n := -int64(sent)
	for _, m := range items {
		n += int64(len(m.Data))
		for _, f := range m.Frames {
			n += int64(len(f.Data))
		}
	}
	if s.cfg.Media.Folder == "" || n <= smallBody {
		return func() {}, nil
	}
	held, err := s.reserve(ctx, n)
	if err != nil {
		return func() {}, err
	}
	return held.release, nil
}

// keep gives back what a body that was read does not need: a chunked body reserves
// as much as may come, and an answer may take minutes. A small body needs nothing.
func (r *reservation) keep(size int64) {
	if r == nil {
		return
	}
	if size <= smallBody {
		size = 0
	}
	if size < r.n {
		r.bodies.Release(r.n - size)
		r.n = size
	}
}

// release gives the rest back.
func (r *reservation) release() {
	r.bodies.Release(r.n)
	r.n = 0
}

func checkEncoding(r *http.Request) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return appliance.Errorf(codeEncoding, "", "a body with Content-Encoding is not read; send it as it is")
	}
	return nil
}

func tooLarge(w *response, max int64) error {
	w.Header().Set("Connection", "close") // the rest of it will not be read
	return appliance.Errorf(appliance.CodeBodyTooLarge, "", "the body is larger than %d bytes", max)
}

func bodyError(w *response, err error) error {
	w.Header().Set("Connection", "close")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return appliance.Errorf(codeTimeout, "", "the body did not come in time")
	}
	return appliance.Errorf(appliance.CodeInvalidJSON, "", "the body ended before its announced length")
}
