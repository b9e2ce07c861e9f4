package appliance

import (
	"container/list"
	"sync"
)

// embeddings remembers encoded media by their content, and content by its file. Its
// methods are safe for concurrent use.
type embeddings struct {
	mu      sync.Mutex
	limit   int64 // bytes of rows
	bytes   int64
	entries map[[32]byte]*list.Element // of *embedding
	recent  list.List                  // front: used last
	files   map[[32]byte][32]byte      // names of contents by names of files
	last    int64                      // id that was given last; ids go down from -1
}

// embedding is an item as it was encoded. Its rows have ids below zero, which the model's
// books of tokens in place take for tokens: equal ids are rows of equal content.
type embedding struct {
	name   [32]byte
	pieces [][]float32
	first  int32 // id of the first row; the others follow downwards
	rows   int
	bytes  int64
}

// maxFiles bounds the names of files that are remembered.
const maxFiles = 1 << 14

func newEmbeddings(limit int64) *embeddings {
	return &embeddings{limit: limit, entries: make(map[[32]byte]*list.Element), files: make(map[[32]byte][32]byte), last: -1}
}

// get finds an embedding by the name of its content.
func (c *embeddings) get(name [32]byte) *embedding {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[name]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*embedding)
}

// getFile finds an embedding by the name of a file with that content.
func (c *embeddings) getFile(file [32]byte) *embedding {
	c.mu.Lock()
	name, ok := c.files[file]
	c.mu.Unlock()
	if !ok {
		return nil
	}
	return c.get(name)
}

// know notes the content of a file.
func (c *embeddings) know(file, name [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.files) >= maxFiles {
		clear(c.files)
	}
	c.files[file] = name
}

// put keeps what was encoded, in place of what was used least recently.
func (c *embeddings) put(name [32]byte, pieces [][]float32, rows int) *embedding {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &embedding{name: name, pieces: pieces, first: c.ids(rows), rows: rows}
	for _, p := range pieces {
		e.bytes += 4 * int64(len(p))
	}
	c.entries[name] = c.recent.PushFront(e)
	c.bytes += e.bytes
	for c.bytes > c.limit && c.recent.Len() > 1 {
		old := c.recent.Remove(c.recent.Back()).(*embedding)
		delete(c.entries, old.name)
		c.bytes -= old.bytes
	}
	return e
}

// ids gives rows their ids. After two thousand million rows they begin again: by then no
// page holds rows of the first ones, unless they are in use all the time, and then they are
// in this cache as well, whose ids are passed over.
func (c *embeddings) ids(rows int) int32 {
	const lowest = -1 << 31
	for {
		first := c.last - 1
		if first-int64(rows) <= lowest {
			c.last = -1
			continue
		}
		c.last = first - int64(rows) + 1
		free := true
		for e := c.recent.Front(); e != nil && free; e = e.Next() {
			other := e.Value.(*embedding)
			free = first <= int64(other.first)-int64(other.rows) || c.last > int64(other.first)
		}
		if free {
			return int32(first)
		}
	}
}
