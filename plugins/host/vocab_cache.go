package host

import (
	"slices"
	"sync"
)

// vocabCache keeps what was computed about vocabularies: it is the same for every request.
// Masks are kept apart from lists and tries, which take longest to make and are few, and
// no plugin's masks push out more than its share of the others'.
type vocabCache struct {
	mu     sync.Mutex
	masks  map[maskKey]*keptMask
	owned  map[string]int // bytes by the hash of the plugin that asked first
	bytes  int
	clock  int64
	known  map[string]*vocabFacts
	latest []string // keys of known, the latest use last
}

type maskKey struct {
	vocab string
	kind  uint32
	arg   string
}

type keptMask struct {
	mask  []byte
	owner string
	used  int64
}

// vocabFacts is what is known of one vocabulary.
type vocabFacts struct {
	once  sync.Once
	bytes int     // of all tokens
	ends  []int32 // tokens that end a text

	loads [3]struct { // by kind of vocab_load
		once sync.Once
		data []byte
	}
}

// of finds what is known of a vocabulary, or begins it.
func (c *vocabCache) of(v Vocabulary) *vocabFacts {
	key := v.Key()
	if key == goldenKey { // nothing of it is kept
		return &vocabFacts{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.known[key]
	if at := slices.Index(c.latest, key); at >= 0 {
		c.latest = slices.Delete(c.latest, at, at+1)
	}
	c.latest = append(c.latest, key)
	if f != nil {
		return f
	}
	if len(c.latest) > vocabsKept {
		delete(c.known, c.latest[0])
		c.latest = slices.Delete(c.latest, 0, 1)
	}
	if c.known == nil {
		c.known = map[string]*vocabFacts{}
	}
	f = &vocabFacts{}
	c.known[key] = f
	return f
}

// facts counts a vocabulary, once.
func (c *vocabCache) facts(v Vocabulary) *vocabFacts {
	f := c.of(v)
	f.once.Do(func() {
		for id := range int32(v.Size()) {
			f.bytes += len(v.Bytes(id))
			if v.EOG(id) {
				f.ends = append(f.ends, id)
			}
		}
	})
	return f
}

// load is the list, the trie or the trie with spans of a vocabulary, made once: who asks
// meanwhile waits.
func (c *vocabCache) load(v Vocabulary, kind uint32) []byte {
	l := &c.of(v).loads[kind]
	l.once.Do(func() {
		switch kind {
		case 0:
			l.data = vocabList(v)
		case 1:
			l.data = vocabTrie(v)
		default:
			l.data = vocabSpans(v)
		}
	})
	return l.data
}

// mask finds a mask or makes it for a plugin. Two that ask at once may both make it.
func (c *vocabCache) mask(k maskKey, plugin string, make_ func() []byte) []byte {
	if k.vocab == goldenKey {
		return make_()
	}
	c.mu.Lock()
	c.clock++
	if m := c.masks[k]; m != nil {
		m.used = c.clock
		c.mu.Unlock()
		return m.mask
	}
	c.mu.Unlock()
	b := make_()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.masks == nil {
		c.masks, c.owned = map[maskKey]*keptMask{}, map[string]int{}
	}
	if _, twice := c.masks[k]; twice || len(b) > masksShare {
		return b
	}
	for c.owned[plugin]+len(b) > masksShare {
		c.evict(func(m *keptMask) bool { return m.owner == plugin })
	}
	for c.bytes+len(b) > masksKept {
		c.evict(func(*keptMask) bool { return true })
	}
	c.masks[k] = &keptMask{b, plugin, c.clock}
	c.owned[plugin] += len(b)
	c.bytes += len(b)
	return b
}

// evict drops the mask of a kind that was not used for longest; there is one.
func (c *vocabCache) evict(of func(m *keptMask) bool) {
	var oldest maskKey
	var at *keptMask
	for k, m := range c.masks {
		if of(m) && (at == nil || m.used < at.used) {
			oldest, at = k, m
		}
	}
	delete(c.masks, oldest)
	c.bytes -= len(at.mask)
	if c.owned[at.owner] -= len(at.mask); c.owned[at.owner] == 0 {
		delete(c.owned, at.owner)
	}
}
