package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/sign"
)

// DefaultPoll is how often the folder is looked at.
const DefaultPoll = 2 * time.Second

// What Open may answer.
var (
	ErrUnknown     = errors.New("registry: there is no such plugin")
	ErrVersion     = errors.New("registry: no version of the plugin is in the range")
	ErrQuarantined = errors.New("registry: the plugin is quarantined")
)

// Options say where plugins come from. They are not changed after New.
type Options struct {
	Runtime *host.Runtime
	BuiltIn fs.FS  // its *.wasm and *.js files; nil: none
	Dir     string // the folder, with such files; "": none
	Policy  Policy // "" is UnsignedOK
	Keys    sign.Keys
	State   string // the file of quarantined plugins; "" keeps none
	Poll    time.Duration
	// Script makes a plugin of a .js file; nil: such files are not looked at.
	Script func(source []byte) (file []byte, err error)
	Now    func() time.Time
	Log    *slog.Logger
}

// Registry is the plugins that there are. It is safe for concurrent use.
type Registry struct {
	o Options

	scanning turn
	sources  map[string]*source // by place; of the scan alone
	held     map[*entry]bool    // whose plugins the registry keeps; of the scan alone
	hiding   map[*entry]bool    // that it was said of; of the scan alone
	begun    bool               // a scan has begun; of the scan alone
	saving   sync.Mutex         // the file of quarantined plugins

	mu          sync.RWMutex
	changed     chan struct{}     // closed, and made anew, when anything of this changes
	progress    progress          // of the first scan
	pending     map[string]string // place to name: files that the first scan has not come to
	closed      bool
	current     map[string][]*entry // by name, newest version first
	rejected    map[string]Rejected // by place
	records     map[string]*record  // by hash
	settings    map[chosen]*chosenRecord
	quarantined map[string]Quarantined
	owners      map[string]string // by hash
}

// turn lets one at a time do something.
type turn chan struct{}

// take waits for the turn until ctx ends, whose error it returns then.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave lets the next one.
func (t turn) leave() { <-t }

// progress is how far the first scan is.
type progress int

const (
	atStart   progress = iota
	named              // pending is known
	builtInIn          // the plugins of the binary are there
	scanned
)

// entry is a version that works. It does not change.
type entry struct {
	place     string
	plugin    *host.Plugin
	signature Signature
	key       string
	loaded    time.Time
}

// Rejected is a file that is no plugin, or an update that does not work.
type Rejected struct {
	Place  string // in the folder or in the binary
	Hash   string
	Reason string
	At     time.Time
}

// Info is one plugin of the list.
type Info struct {
	Manifest    *abi.Manifest
	Hash        string
	Place       string
	Signature   Signature
	Key         string // id of the key that signed it
	Facts       host.Facts
	Loaded      time.Time
	Quarantined *Quarantined // nil: it is given out
	Update      string       // why the latest file at its place was rejected; "": it was not
}

// New makes a registry. Nothing is loaded before Scan or Run.
func New(o Options) (*Registry, error) {
	if o.Policy == "" {
		o.Policy = UnsignedOK
	}
	if o.Poll == 0 {
		o.Poll = DefaultPoll
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Runtime == nil:
		return nil, errors.New("registry: no runtime")
	case !slices.Contains([]Policy{UnsignedOK, Warn, Require}, o.Policy):
		return nil, fmt.Errorf("registry: signature policy %q", o.Policy)
	case o.Poll < 0:
		return nil, fmt.Errorf("registry: poll every %v", o.Poll)
	}
	r := &Registry{
		o: o, scanning: make(turn, 1), changed: make(chan struct{}), hiding: map[*entry]bool{}, owners: map[string]string{}, sources: map[string]*source{}, current: map[string][]*entry{},
		rejected: map[string]Rejected{}, records: map[string]*record{}, settings: map[chosen]*chosenRecord{}, quarantined: map[string]Quarantined{},
	}
	r.loadQuarantine()
	return r, nil
}

// Run scans, and scans again as often as the options say, until ctx ends.
func (r *Registry) Run(ctx context.Context) {
	t := time.NewTicker(r.o.Poll)
	defer t.Stop()
	for {
		r.Scan(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Open gives out the newest version of a plugin that is in a range and not quarantined.
// Until the first scan is over it waits for what that may still find under the name. The
// caller closes the plugin.
func (r *Registry) Open(ctx context.Context, name string, in Range) (*host.Plugin, error) {
	for {
		p, settled, changed, err := r.open(name, in)
		if settled {
			return p, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// open is Open as things are now; settled is false where the first scan may change it.
func (r *Registry) open(name string, in Range) (p *host.Plugin, settled bool, changed <-chan struct{}, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	expected := r.progress < named
	for _, n := range r.pending {
		expected = expected || n == name
	}
	if r.progress < scanned && expected {
		return nil, false, r.changed, nil
	}
	p, err = r.find(name, in)
	return p, err == nil || r.progress >= builtInIn, r.changed, err
}

// find is what there is under a name; r.mu is held.
func (r *Registry) find(name string, in Range) (*host.Plugin, error) {
	versions := r.current[name]
	if len(versions) == 0 {
		return nil, fmt.Errorf("%w: %.64q", ErrUnknown, name)
	}
	var bad error
	for _, e := range versions {
		m := e.plugin.Manifest()
		if !in.Has(m.Version) {
			continue
		}
		if q, ok := r.quarantined[e.plugin.Hash()]; ok { // an older one may work
			if bad == nil {
				bad = fmt.Errorf("%w: %s@%s: %s", ErrQuarantined, m.Name, m.Version, q.Reason)
			}
			continue
		}
		if e.plugin.Retain() { // the registry holds it while the lock is held
			return e.plugin, nil
		}
	}
	if bad != nil {
		return nil, bad
	}
	var have []string
	for _, e := range versions {
		have = append(have, e.plugin.Manifest().Version)
	}
	return nil, fmt.Errorf("%w: %s %s, there is %s", ErrVersion, name, in, strings.Join(have, ", "))
}

// update changes what mu guards and tells those who wait.
func (r *Registry) update(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Owner says who stands behind a file by its hash: "" the binary, the id of a key that is
// trusted, or "unsigned". What a plugin stores is kept under its name and its owner: a file
// that merely has the name of another does not read that one's store.
func (r *Registry) Owner(hash string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if owner, ok := r.owners[hash]; ok {
		return owner
	}
	return unsigned
}

const unsigned = "unsigned"

// owner of an entry.
func (e *entry) owner() string {
	switch e.signature {
	case BuiltIn:
		return ""
	case SignedTrusted:
		return e.key
	}
	return unsigned
}

// Ready tells whether the first scan is over.
func (r *Registry) Ready() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.progress == scanned
}

// List is what there is, by name and version, and the files that were rejected.
func (r *Registry) List() (plugins []Info, rejected []Rejected) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, versions := range r.current {
		for _, e := range versions {
			i := Info{
				Manifest: e.plugin.Manifest(), Hash: e.plugin.Hash(), Place: e.place, Signature: e.signature, Key: e.key,
				Facts: e.plugin.Facts(), Loaded: e.loaded, Update: r.rejected[e.place].Reason,
			}
			if q, ok := r.quarantined[i.Hash]; ok {
				i.Quarantined = &q
			}
			plugins = append(plugins, i)
		}
	}
	slices.SortFunc(plugins, func(a, b Info) int {
		if c := strings.Compare(a.Manifest.Name, b.Manifest.Name); c != 0 {
			return c
		}
		return -compare(a.Manifest.Version, b.Manifest.Version)
	})
	for _, j := range r.rejected {
		rejected = append(rejected, j)
	}
	slices.SortFunc(rejected, func(a, b Rejected) int { return strings.Compare(a.Place, b.Place) })
	return plugins, rejected
}

// Close lets go of all plugins; those in use live on until they are closed. It waits for a
// scan to end, and may be called twice.
func (r *Registry) Close() error {
	_ = r.scanning.take(context.Background()) // which does not end
	defer r.scanning.leave()
	r.mu.Lock()
	r.current, r.closed = map[string][]*entry{}, true
	r.mu.Unlock()
	for e := range r.held {
		e.plugin.Close()
	}
	r.held = nil
	return nil
}
