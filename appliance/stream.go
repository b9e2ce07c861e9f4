package appliance

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// Completion is a completion in progress. Next is for one goroutine; the other
// methods are safe for concurrent use. Chunks are queued for the reader, so a slow
// reader delays nobody.
type Completion struct {
	id      string
	wake    func() // tells the scheduler to look at cancelled
	release func() // unbinds the completion from its context

	cancelled atomic.Bool
	done      chan struct{} // closed at the end
	ready     chan struct{} // holds one signal when something was queued

	mu     sync.Mutex
	chunks []Chunk
	read   int // chunks[:read] have been read
	ended  bool
	result *Result
	err    error
}

func newCompletion(id string) *Completion {
	return &Completion{id: id, wake: func() {}, release: func() {}, done: make(chan struct{}), ready: make(chan struct{}, 1)}
}

// ID returns the request's id.
func (c *Completion) ID() string { return c.id }

// Next returns the next chunk, waiting for it. After the chunk with the finish
// reason it returns io.EOF; where the completion failed or was closed it returns
// an *Error after the chunks made before. When ctx ends it returns ctx's error and
// the completion goes on.
func (c *Completion) Next(ctx context.Context) (Chunk, error) {
	for {
		chunk, ok, err := c.take()
		if ok || err != nil {
			return chunk, err
		}
		select {
		case <-c.ready:
		case <-c.done:
		case <-ctx.Done():
			return Chunk{}, ctx.Err()
		}
	}
}

// take returns what can be had without waiting.
func (c *Completion) take() (chunk Chunk, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read < len(c.chunks) {
		chunk = c.chunks[c.read]
		c.chunks[c.read] = Chunk{}
		if c.read++; c.read == len(c.chunks) {
			c.chunks, c.read = c.chunks[:0], 0
		}
		return chunk, true, nil
	}
	if !c.ended {
		return Chunk{}, false, nil
	}
	if c.err != nil {
		return Chunk{}, false, c.err
	}
	return Chunk{}, false, io.EOF
}

// Wait waits for the end and returns the joined result, or the *Error with which the
// completion ended. When ctx ends first it returns ctx's error and the completion
// goes on. It takes no chunks from Next.
func (c *Completion) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-c.done:
	default:
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result, c.err
}

// Result returns the joined result, nil before the end and after a failure.
func (c *Completion) Result() *Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result
}

// Close cancels the completion when it is not finished: no further token is begun.
// It returns at once; Wait tells when the work has ended. It may be called twice.
func (c *Completion) Close() {
	select {
	case <-c.done:
	default:
		if !c.cancelled.Swap(true) {
			c.wake()
		}
	}
}

// publish queues a chunk.
func (c *Completion) publish(chunk Chunk) {
	c.mu.Lock()
	c.chunks = append(c.chunks, chunk)
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// finish ends the completion: with a last chunk and a result, or with an error.
func (c *Completion) finish(last Chunk, result *Result, err error) {
	c.release()
	c.mu.Lock()
	if err == nil {
		c.chunks = append(c.chunks, last)
	}
	c.ended, c.result, c.err = true, result, err
	c.mu.Unlock()
	close(c.done)
}
