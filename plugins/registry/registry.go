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
	o     Options
	ready chan struct{} // closed by the first scan

	scanning sync.Mutex
	sources  map[string]*source // by place; of the scan alone
	held     map[*entry]bool    // whose plugins the registry keeps; of the scan alone

	mu          sync.RWMutex
	first       sync.Once
	closed      bool
	current     map[string][]*entry // by name, newest version first
	rejected    map[string]Rejected // by place
	records     map[string]*record  // by hash
	quarantined map[string]Quarantined
}

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
		o: o, ready: make(chan struct{}), sources: map[string]*source{}, current: map[string][]*entry{},
		rejected: map[string]Rejected{}, records: map[string]*record{}, quarantined: map[string]Quarantined{},
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

// Open gives out the newest version of a plugin that is in a range. It waits for the
// first scan. The caller closes the plugin.
func (r *Registry) Open(ctx context.Context, name string, in Range) (*host.Plugin, error) {
	select {
	case <-r.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	versions := r.current[name]
	if len(versions) == 0 {
		return nil, fmt.Errorf("%w: %.64q", ErrUnknown, name)
	}
	for _, e := range versions {
		m := e.plugin.Manifest()
		if !in.Has(m.Version) {
			continue
		}
		if q, ok := r.quarantined[e.plugin.Hash()]; ok {
			return nil, fmt.Errorf("%w: %s@%s: %s", ErrQuarantined, m.Name, m.Version, q.Reason)
		}
		if e.plugin.Retain() { // the registry holds it while the lock is held
			return e.plugin, nil
		}
	}
	var have []string
	for _, e := range versions {
		have = append(have, e.plugin.Manifest().Version)
	}
	return nil, fmt.Errorf("%w: %s %s, there is %s", ErrVersion, name, in, strings.Join(have, ", "))
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
	r.scanning.Lock()
	defer r.scanning.Unlock()
	r.mu.Lock()
	r.current, r.closed = map[string][]*entry{}, true
	r.mu.Unlock()
	for e := range r.held {
		e.plugin.Close()
	}
	r.held = nil
	return nil
}
