package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/wasm"
)

// Options say how plugins are tested. The zero value tests with all defaults.
type Options struct {
	// Host are the options of the runtime. Interpreter is set where a check needs it,
	// AllowSlow always.
	Host host.Options
	// Config is the configuration to test with; nil is the first one of those that the
	// manifest's schema allows that the plugin is interested in.
	Config json.RawMessage
	// Others are the files of plugins that are run in a chain with this one.
	Others [][]byte
	// Tokens of the long run; 0 is 10,000.
	Tokens int
	// Vocabularies are the sizes of vocabulary; nil is [Vocabularies].
	Vocabularies []int
	// Only are the names of the checks to make; nil is all. The first two are always
	// made.
	Only []string
}

// Result is what one check found.
type Result struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Passed  bool     `json:"passed"`
	Skipped string   `json:"skipped,omitempty"` // why it was not made
	Error   string   `json:"error,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	MS      float64  `json:"ms"`
}

// Report is what all checks found.
type Report struct {
	Plugin  string            `json:"plugin"`
	Version string            `json:"version"`
	Hash    string            `json:"sha256"`
	ABI     string            `json:"abi"`
	Passed  bool              `json:"passed"`
	Config  json.RawMessage   `json:"config,omitempty"` // that was tested with
	Checks  []Result          `json:"checks"`
	Hooks   map[string]Figure `json:"hooks,omitempty"`
}

// check is one of the ten.
type check struct {
	name, about string
	run         func(*kit) error
}

// checks stand in the order in which they are made. The first two decide whether there is
// anything to run.
var checks = []check{
	{"pipeline", "the file passes the load pipeline", (*kit).pipeline},
	{"manifest", "manifest, schema and defaults: every configuration the schema allows opens", (*kit).manifest},
	{"determinism", "compiler and interpreter agree on every byte and all fuel", (*kit).determinism},
	{"corpora", "vocabularies of 32k to 262k tokens, and edge frames", (*kit).corpora},
	{"restore", "state comes back after drafts and rewinds, and by replay", (*kit).restore},
	{"memory", "10,000 tokens in flat memory", (*kit).flat},
	{"golden", "the tests that the file carries", (*kit).golden},
	{"pointers", "no illegal action, no write where the host's data is", (*kit).pointers},
	{"chains", "beside the built-in plugins", (*kit).chains},
	{"figures", "time and fuel of each hook", (*kit).figures},
}

// Names are the names of the checks in their order.
func Names() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// kit is one run of the checks over one file.
type kit struct {
	ctx  context.Context
	o    Options
	file []byte

	compiled, interpreted *host.Runtime
	plugin                *host.Plugin // by the runtime of the machine
	slow                  *host.Plugin // interpreted
	others                []other
	m                     *abi.Manifest
	config                json.RawMessage
	idle                  bool // no configuration interests it
	notes                 []string
	hooks                 map[string]Figure
	vocabularies          map[int]*Vocabulary
}

// errSkipped wraps the reason why a check was not made.
var errSkipped = errors.New("skipped")

func skip(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errSkipped, fmt.Sprintf(format, args...))
}

func (k *kit) note(format string, args ...any) {
	k.notes = append(k.notes, fmt.Sprintf(format, args...))
}

// Check makes the checks over a file. The error is of the kit, not of the plugin.
func Check(ctx context.Context, file []byte, o Options) (*Report, error) {
	return run(ctx, file, o, func(_ string, do func() Result) Result { return do() })
}

// Run makes the checks over a file as named sub-tests of t.
func Run(t *testing.T, path string, o Options) *Report {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run(t.Context(), file, o, func(name string, do func() Result) (r Result) {
		t.Run(name, func(t *testing.T) {
			r = do()
			for _, n := range r.Notes {
				t.Log(n)
			}
			if r.Skipped != "" {
				t.Skip(r.Skipped)
			}
			if !r.Passed {
				t.Error(r.Error)
			}
		})
		return r
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func run(ctx context.Context, file []byte, o Options, each func(string, func() Result) Result) (*Report, error) {
	k := &kit{ctx: ctx, o: o, file: file, vocabularies: map[int]*Vocabulary{}}
	if k.o.Tokens == 0 {
		k.o.Tokens = 10_000
	}
	if k.o.Vocabularies == nil {
		k.o.Vocabularies = Vocabularies
	}
	if err := k.open(); err != nil {
		return nil, err
	}
	defer k.close()
	r := &Report{ABI: fmt.Sprintf("%d.%d", abi.Major, abi.Minor), Passed: true}
	for i, c := range checks {
		if i > 1 && !k.wanted(c.name) {
			continue
		}
		result := each(c.name, func() Result { return k.do(c) })
		r.Checks = append(r.Checks, result)
		r.Passed = r.Passed && (result.Passed || result.Skipped != "" && k.plugin != nil)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if k.plugin != nil {
		r.Plugin, r.Version, r.Hash = k.m.Name, k.m.Version, k.plugin.Hash()
	}
	r.Config, r.Hooks = k.config, k.hooks
	return r, nil
}

func (k *kit) wanted(name string) bool {
	for _, n := range k.o.Only {
		if n == name {
			return true
		}
	}
	return k.o.Only == nil
}

// do makes one check.
func (k *kit) do(c check) Result {
	r := Result{Name: c.name, About: c.about}
	k.notes = nil
	from := time.Now()
	var err error
	switch {
	case c.name != "pipeline" && k.plugin == nil:
		err = skip("the file was not loaded")
	case k.idle && c.name != "golden":
		err = skip("the plugin is interested in no request of its default configurations: name one")
	default:
		err = c.run(k)
	}
	r.MS, r.Notes = float64(time.Since(from).Microseconds())/1000, k.notes
	switch {
	case errors.Is(err, errSkipped):
		r.Skipped = err.Error()[len(errSkipped.Error())+2:]
	case err != nil:
		r.Error = err.Error()
	default:
		r.Passed = true
	}
	return r
}

// open makes the runtimes and loads the other plugins.
func (k *kit) open() (err error) {
	h := k.o.Host
	h.AllowSlow = true
	if k.compiled, err = host.New(h); err != nil {
		return err
	}
	h.Interpreter, h.Compile, h.Cache = true, nil, ""
	if k.interpreted, err = host.New(h); err != nil {
		return errors.Join(err, k.compiled.Close())
	}
	for _, f := range k.o.Others {
		p, err := k.compiled.Load(k.ctx, f)
		if err != nil {
			k.close()
			return fmt.Errorf("plugintest: another plugin of the chain: %w", err)
		}
		k.others = append(k.others, other{plugin: p, config: k.firstConfig(p)})
	}
	return nil
}

// other is a plugin that is run beside the one that is tested.
type other struct {
	plugin *host.Plugin
	config []byte // nil: none interests it
}

// firstConfig finds a configuration that a plugin works with.
func (k *kit) firstConfig(p *host.Plugin) []byte {
	for _, c := range configsOf(p.Manifest().Schema.Raw()) {
		full, err := p.Manifest().Schema.Fill(c.text)
		if err != nil {
			continue
		}
		if interested, err := k.tryOpen(p, full); err == nil && interested {
			return full
		}
	}
	return nil
}

func (k *kit) close() {
	for _, o := range k.others {
		o.plugin.Close()
	}
	for _, p := range []*host.Plugin{k.plugin, k.slow} {
		if p != nil {
			p.Close()
		}
	}
	_, _ = k.compiled.Close(), k.interpreted.Close()
}

// pipeline is check 1. The file's own tests are left to check 7, so that a fault is
// reported once, by its name.
func (k *kit) pipeline() (err error) {
	bare, err := wasm.DropCustom(k.file, abi.SectionTests)
	if err != nil {
		return err
	}
	if k.plugin, err = k.compiled.Load(k.ctx, bare); err != nil {
		k.plugin = nil
		return err
	}
	k.m = k.plugin.Manifest()
	f := k.plugin.Facts()
	k.note("%d bytes of file, %d KiB of memory an instance, hooks %v", len(k.file), f.MemoryBytes>>10, f.Hooks)
	return nil
}

// vocabulary makes a vocabulary once.
func (k *kit) vocabulary(size int) *Vocabulary {
	if k.vocabularies[size] == nil {
		k.vocabularies[size] = NewVocabulary(size)
	}
	return k.vocabularies[size]
}

// small is the vocabulary of checks for which the size does not matter.
func (k *kit) small() *Vocabulary { return k.vocabularyFor(k.m) }

func (k *kit) vocabularyFor(m *abi.Manifest) *Vocabulary { return k.vocabulary(max(4096, m.MinVocab)) }

// sessionOf makes a session of a scene with the plugin.
func (k *kit) sessionOf(sc *scene) *session {
	if sc.config == nil {
		sc.config = k.config
	}
	return &session{ctx: k.ctx, sc: sc, plugin: k.plugin, interpreted: k.compiled.Interpreter(), program: k.plugin.Has(abi.HookRun)}
}
