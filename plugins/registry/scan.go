package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"ganglion/plugins/host"
)

// rehash is after how many scans a file is read again although its size and time are as
// they were.
const rehash = 30

// young is how long after its last change a file is read at each scan: one that is changed
// twice within a tick of its file system's clock (2 s on FAT) may have the same size and time
// both times.
const young = 2 * time.Second

// A file that failed for no fault of its own (a machine too busy, a full disk) is tried
// again after these times.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 10 * time.Minute
)

// source is one file as the latest scan saw it.
type source struct {
	size     int64
	modified time.Time
	settled  bool // it was read when its last change was a while ago
	age      int  // scans since it was read
	hash     [sha256.Size]byte
	builtIn  bool
	latest   [sha256.Size]byte // of the file when it was read; hash, but for one that is tried again
	retry    time.Time         // when a file that failed for no fault of its own is tried again
	tries    int
	failed   error     // why this hash is not in use
	at       time.Time // of the failure
	entry    *entry    // in use; may be of an older hash
}

// Scan looks at all files once and takes in what changed. Files are loaded one after
// another, while everybody else works with what there is.
func (r *Registry) Scan(ctx context.Context) {
	if r.scanning.take(ctx) != nil {
		return
	}
	defer r.scanning.leave()
	if r.closed {
		return
	}
	if !r.begun {
		r.begun = true
		r.expect()
	}
	seen := map[string]bool{}
	if r.o.BuiltIn != nil {
		r.scanFolder(ctx, r.o.BuiltIn, "built-in:", true, seen)
	}
	if ctx.Err() == nil {
		r.advance(builtInIn)
	}
	if r.o.Dir != "" {
		r.scanFolder(ctx, os.DirFS(r.o.Dir), "", false, seen)
	}
	if ctx.Err() != nil {
		return
	}
	changed := false
	for place, s := range r.sources {
		if !seen[place] {
			delete(r.sources, place)
			changed = changed || s.entry != nil || s.failed != nil
		}
	}
	if changed {
		r.publish()
	}
	r.advance(scanned)
}

// advance tells how far the first scan is.
func (r *Registry) advance(to progress) {
	r.update(func() {
		r.progress = max(r.progress, to)
		if to == scanned {
			r.pending = nil
		}
	})
}

// expect reads the names in the files of the folder, which takes little beside loading
// them: who asks for another name does not wait for them.
func (r *Registry) expect() {
	pending := map[string]string{}
	if r.o.Dir != "" {
		folder := os.DirFS(r.o.Dir)
		files, _ := fs.ReadDir(folder, ".") // the scan says what is wrong with it
		for _, f := range files {
			ext := path.Ext(f.Name())
			if ext != ".wasm" && (ext != ".js" || r.o.Script == nil) {
				continue
			}
			info, err := fs.Stat(folder, f.Name())
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			file, err := readFile(folder, f.Name())
			if err == nil && ext == ".js" {
				file, err = r.o.Script(file)
			}
			if err != nil {
				continue
			}
			if m, err := host.Inspect(file); err == nil {
				pending[f.Name()] = m.Name
			}
		}
	}
	r.update(func() { r.pending, r.progress = pending, max(r.progress, named) })
}

// scanFolder takes in the files of one folder in the order of their names.
func (r *Registry) scanFolder(ctx context.Context, folder fs.FS, prefix string, builtIn bool, seen map[string]bool) {
	files, err := fs.ReadDir(folder, ".")
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.o.Log.Warn("the folder of plugins cannot be read", "error", err)
			for place, s := range r.sources { // what cannot be seen is not gone
				seen[place] = seen[place] || s.builtIn == builtIn
			}
		}
		return
	}
	for _, f := range files {
		ext := path.Ext(f.Name())
		if ext != ".wasm" && (ext != ".js" || r.o.Script == nil) {
			continue
		}
		place := prefix + f.Name()
		info, err := fs.Stat(folder, f.Name())
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		seen[place] = true
		s := r.sources[place]
		if s == nil {
			s = &source{builtIn: builtIn, age: rehash}
			r.sources[place] = s
		}
		due := !s.retry.IsZero() && !r.o.Now().Before(s.retry)
		same := s.size == info.Size() && s.modified.Equal(info.ModTime())
		if s.age++; s.age < rehash && !due && same && s.settled {
			continue
		}
		if builtIn && s.entry != nil { // the binary does not change
			continue
		}
		again := same && !due && s.age < rehash
		s.size, s.modified, s.age = info.Size(), info.ModTime(), 0
		age := r.o.Now().Sub(s.modified) // a time to come is one of another clock, and no young file's
		s.settled = builtIn || age > young || age < -young
		if r.scanFile(ctx, folder, f.Name(), place, s, again) {
			r.publish()
		}
		if ctx.Err() != nil {
			return
		}
		if !builtIn {
			r.update(func() { delete(r.pending, place) })
		}
	}
}

// scanFile reads a file and loads it where its hash is new. It tells whether anything
// changed. again says that the file looks as it did when it was read: one that failed then,
// and still is what it was, waits until it is tried again.
func (r *Registry) scanFile(ctx context.Context, folder fs.FS, name, place string, s *source, again bool) (changed bool) {
	file, err := readFile(folder, name)
	hash := sha256.Sum256(file)
	if err == nil && hash == s.hash || again && (err != nil || hash == s.latest) {
		return false
	}
	was := s.hash
	s.hash, s.latest = hash, hash
	var e *entry
	unread := err != nil
	if err == nil {
		e, err = r.load(ctx, file, place, s.builtIn)
	}
	if ctx.Err() != nil { // who interrupts says nothing of the file
		s.hash, s.age = was, rehash
		if err == nil {
			e.plugin.Close()
		}
		return false
	}
	s.failed, s.at, s.retry = err, r.o.Now(), time.Time{}
	if err != nil {
		if unread || errors.Is(err, host.ErrTransient) {
			s.hash, s.retry = was, s.at.Add(min(firstRetry<<min(s.tries, 16), lastRetry))
			s.tries++
		}
		r.o.Log.Warn("plugin rejected", "file", place, "error", err, "again", s.retry)
		return true
	}
	s.tries = 0
	r.update(func() {
		if owner, ok := r.owners[e.plugin.Hash()]; !ok || owner != "" {
			r.owners[e.plugin.Hash()] = e.owner()
		}
	})
	s.entry = e
	m := e.plugin.Manifest()
	r.o.Log.Info("plugin loaded", "plugin", m.Name, "version", m.Version, "file", place, "hash", e.plugin.Hash())
	return true
}

// readFile reads a file of at most the size that a plugin may have.
func readFile(folder fs.FS, name string) ([]byte, error) {
	f, err := folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, host.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	if len(b) > host.MaxFileBytes {
		return nil, fmt.Errorf("registry: %s: more than %d bytes", name, host.MaxFileBytes)
	}
	return b, nil
}

// load takes one file through the policy and the pipeline.
func (r *Registry) load(ctx context.Context, file []byte, place string, builtIn bool) (*entry, error) {
	e := &entry{place: place, signature: BuiltIn, loaded: r.o.Now()}
	if !builtIn {
		var err error
		script := path.Ext(place) == ".js"
		if script { // a script carries no signature
			e.signature = Unsigned
			if r.o.Policy == Require {
				err = errors.New("registry: a trusted signature is required, and scripts have none")
			}
		} else {
			e.signature, e.key, err = r.signature(file)
		}
		if err != nil {
			return nil, err
		}
		if r.o.Policy == Warn && e.signature != SignedTrusted {
			r.o.Log.Warn("plugin without a trusted signature", "file", place, "signature", string(e.signature), "key", e.key)
		}
	}
	if path.Ext(place) == ".js" {
		var err error
		if file, err = r.o.Script(file); err != nil {
			return nil, err
		}
	}
	var err error
	e.plugin, err = r.o.Runtime.Load(ctx, file)
	return e, err
}

// publish makes a new table of what the files hold, and puts it in the place of the old
// one at once. Where two files hold the same version of a name, the folder goes before
// the binary and the first name before the others.
func (r *Registry) publish() {
	places := make([]string, 0, len(r.sources))
	for p := range r.sources {
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b string) int {
		if x, y := r.sources[a].builtIn, r.sources[b].builtIn; x != y {
			if y {
				return -1
			}
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
	binary := map[string]bool{} // names of its plugins
	for _, s := range r.sources {
		if s.builtIn && s.entry != nil {
			binary[s.entry.plugin.Manifest().Name] = true
		}
	}
	next := map[string][]*entry{}
	rejected := map[string]Rejected{}
	keep := map[*entry]bool{}
	for _, place := range places {
		s := r.sources[place]
		hash := hex.EncodeToString(s.latest[:])
		if s.failed != nil {
			rejected[place] = Rejected{place, hash, s.failed.Error(), s.at}
		}
		if s.entry == nil {
			continue
		}
		m := s.entry.plugin.Manifest()
		if !s.builtIn && binary[m.Name] {
			if r.o.Policy != UnsignedOK && s.entry.signature != SignedTrusted {
				rejected[place] = Rejected{place, hash, fmt.Sprintf("registry: %s is a plugin of the binary, and only a trusted signature takes its name", m.Name), s.at}
				keep[s.entry] = true
				continue
			}
			if !r.hiding[s.entry] {
				r.hiding[s.entry] = true
				r.o.Log.Info("a file has the name of a plugin of the binary", "file", place, "plugin", m.Name, "version", m.Version)
			}
		}
		at := slices.IndexFunc(next[m.Name], func(o *entry) bool { return compare(o.plugin.Manifest().Version, m.Version) == 0 })
		if at >= 0 {
			if !s.builtIn {
				rejected[place] = Rejected{place, hash, fmt.Sprintf("registry: %s@%s is in %s already", m.Name, m.Version, next[m.Name][at].place), s.at}
			}
			keep[s.entry] = true // it takes over when the other file goes
			continue
		}
		keep[s.entry] = true
		next[m.Name] = append(next[m.Name], s.entry)
	}
	for _, versions := range next {
		slices.SortFunc(versions, func(a, b *entry) int { return -compare(a.plugin.Manifest().Version, b.plugin.Manifest().Version) })
	}
	known := map[string]bool{}
	for e := range keep {
		known[e.plugin.Hash()] = true
	}
	r.update(func() {
		if r.closed {
			next = map[string][]*entry{}
			keep = map[*entry]bool{}
		}
		r.current, r.rejected = next, rejected
		maps.DeleteFunc(r.records, func(hash string, _ *record) bool { return !known[hash] })
		r.forgetSettings(func(hash string) bool { return !known[hash] })
		maps.DeleteFunc(r.owners, func(hash string, _ string) bool { return !known[hash] })
	})
	for e := range r.held {
		if !keep[e] {
			delete(r.hiding, e)
			e.plugin.Close()
		}
	}
	r.held = keep
}
